// Shows new mails as they come.
setInterval(async () => {
  if (document.hidden) return;
  try {
    const answer = await fetch("/api/messages");
    const { messages } = await answer.json();
    const newest = messages.length > 0 ? messages[0].id : "";
    if (newest !== document.body.dataset.newest) location.reload();
  } catch {
    // The installation has stopped; what is shown stays.
  }
}, 2000);
