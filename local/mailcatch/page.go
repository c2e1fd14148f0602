package mailcatch

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

//go:embed list.html message.html style.css list.js
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"join": strings.Join, "size": size,
	"when": func(at time.Time) string { return at.Local().Format("2 Jan 15:04:05") },
}).ParseFS(files, "*.html"))

// The policies for the page and for the HTML of a mail. That HTML is not trusted, so it gets an origin of its own, no
// scripts, no forms and no content from other hosts.
const (
	pageCSP = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; frame-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	mailCSP = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; " +
		"form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)

// newPage returns the page that shows a box.
func newPage(b *box) http.Handler {
	p := page{b}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.list)
	mux.Handle("GET /style.css", http.FileServerFS(files))
	mux.Handle("GET /list.js", http.FileServerFS(files))
	mux.HandleFunc("GET /messages/{id}", p.with(p.show))
	mux.HandleFunc("GET /messages/{id}/html", p.with(p.html))
	mux.HandleFunc("GET /messages/{id}/source", p.with(p.source))
	mux.HandleFunc("GET /messages/{id}/attachments/{n}", p.with(p.attachment))
	mux.HandleFunc("GET /api/messages", p.apiList)
	mux.HandleFunc("GET /api/messages/{id}", p.with(p.apiMessage))
	mux.HandleFunc("DELETE /api/messages", func(w http.ResponseWriter, _ *http.Request) {
		b.clear()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /delete", func(w http.ResponseWriter, r *http.Request) {
		b.clear()
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
	return guard(http.NewCrossOriginProtection().Handler(mux))
}

// guard answers only requests for a name that always means this machine: otherwise a website could make its own name
// resolve to this machine and read the mails.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", pageCSP)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !isLoopback(r.Host) {
			http.Error(w, "this page is for this machine: call it localhost or 127.0.0.1", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLoopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	address, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && address.Unmap().IsLoopback()
}

type page struct{ box *box }

func (p page) with(show func(http.ResponseWriter, *http.Request, *caught)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		m := p.box.find(r.PathValue("id"))
		if m == nil {
			http.Error(w, "there is no such message, or not any more", http.StatusNotFound)
			return
		}
		show(w, r, m)
	}
}

func (p page) list(w http.ResponseWriter, _ *http.Request) { render(w, "list.html", p.box.all()) }

type view struct {
	*caught
	Parsed *parsed
	View   string   // html, text, headers or source
	Views  []string // that there are
	Source string
}

func (p page) show(w http.ResponseWriter, r *http.Request, m *caught) {
	v := view{caught: m, Parsed: m.read()}
	if v.Parsed.HTML != "" {
		v.Views = append(v.Views, "html")
	}
	if v.Parsed.Text != "" || v.Parsed.HTML == "" {
		v.Views = append(v.Views, "text")
	}
	v.Views = append(v.Views, "headers", "source")
	v.View = v.Views[0]
	for _, name := range v.Views {
		if name == r.URL.Query().Get("view") {
			v.View = name
		}
	}
	if v.View == "source" {
		v.Source = strings.ToValidUTF8(string(m.raw), "\ufffd")
	}
	render(w, "message.html", v)
}

func (p page) html(w http.ResponseWriter, _ *http.Request, m *caught) {
	w.Header().Set("Content-Security-Policy", mailCSP)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(m.read().HTML))
}

func (p page) source(w http.ResponseWriter, _ *http.Request, m *caught) {
	download(w, m.ID+".eml", m.raw)
}

func (p page) attachment(w http.ResponseWriter, r *http.Request, m *caught) {
	all := m.read().Attachments
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil || n < 0 || n >= len(all) {
		http.Error(w, "there is no such attachment", http.StatusNotFound)
		return
	}
	download(w, all[n].Name, all[n].content)
}

// download makes the browser save the content, whatever its type.
func download(w http.ResponseWriter, name string, content []byte) {
	disposition := mime.FormatMediaType("attachment", map[string]string{"filename": name})
	if disposition == "" {
		disposition = "attachment"
	}
	w.Header().Set("Content-Security-Policy", mailCSP)
	w.Header().Set("Content-Disposition", disposition)
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(content)
}

func (p page) apiList(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, map[string]any{"messages": p.box.all()})
}

func (p page) apiMessage(w http.ResponseWriter, _ *http.Request, m *caught) {
	writeJSON(w, struct {
		*caught
		*parsed
	}{m, m.read()})
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func render(w http.ResponseWriter, name string, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := templates.ExecuteTemplate(w, name, data); err != nil {
		http.Error(w, "the page cannot be made", http.StatusInternalServerError)
	}
}

func size(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
