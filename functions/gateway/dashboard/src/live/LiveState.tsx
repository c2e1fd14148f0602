import { relative } from '../format/time';
import { Icon } from '../ui/Icon';
import { useNow } from '../ui/now';
import { setPaused, useLive } from './live';
import './LiveState.css';

/** useWords returns what is shown; detail, which goes on after words, only where there is room. */
function useWords(): { state: string; words: string; detail?: string } {
  const { paused, failingSince, slowedUntil } = useLive();
  const now = useNow();
  if (paused) {
    return { state: 'paused', words: 'Paused' };
  }
  if (failingSince) {
    return { state: 'stale', words: 'No answer', detail: `, last ${relative(failingSince, now)}` };
  }
  if (slowedUntil) {
    const seconds = Math.max(1, Math.ceil((slowedUntil.getTime() - now.getTime()) / 1000));
    return { state: 'slowed', words: 'Slowed', detail: ` down: the gateway limits requests, next in ${seconds} s` };
  }
  return { state: 'live', words: 'Live' };
}

/** LiveState shows whether the page is current, and pauses and resumes its updates. */
export function LiveState() {
  const { state, words, detail = '' } = useWords();
  const { paused } = useLive();
  return (
    <button
      type="button"
      className={`live live-${state}`}
      aria-pressed={paused}
      aria-label={`${words}${detail}. ${paused ? 'Resume' : 'Pause'} live updates`}
      title={paused ? 'Resume live updates' : 'Pause live updates'}
      onClick={() => setPaused(!paused)}
    >
      <span className="live-dot" aria-hidden="true" />
      <span className="live-words">
        {words}
        <span className="live-detail">{detail}</span>
      </span>
      <Icon name={paused ? 'play' : 'pause'} size={14} />
    </button>
  );
}
