import { Button, IconButton } from './Button';
import { dismiss, useToasts } from './toasts';
import './Toasts.css';

export function Toasts() {
  const toasts = useToasts();
  return (
    <div className="toasts" role="region" aria-label="Notifications" aria-live="polite">
      {toasts.map((toast) => (
        <div key={toast.id} className={`toast toast-${toast.tone}`}>
          <div className="grow">
            <p>{toast.text}</p>
            {toast.detail && <p className="small muted">{toast.detail}</p>}
          </div>
          {toast.action && (
            <Button
              small
              onClick={() => {
                toast.action?.run();
                dismiss(toast.id);
              }}
            >
              {toast.action.label}
            </Button>
          )}
          <IconButton icon="close" label="Dismiss" onClick={() => dismiss(toast.id)} />
        </div>
      ))}
    </div>
  );
}
