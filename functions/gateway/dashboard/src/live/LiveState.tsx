import { relative } from '../format/time';
import { Icon } from '../ui/Icon';
import { useNow } from '../ui/now';
import { setPaused, useLive } from './live';
import './LiveState.css';

/** LiveState shows whether the page is current, and pauses and resumes its updates. */
export function LiveState() {
  const { paused, failingSince } = useLive();
  const now = useNow();
  const state = paused ? 'paused' : failingSince ? 'stale' : 'live';
  const words = paused ? 'Paused' : failingSince ? `No answer, last ${relative(failingSince, now)}` : 'Live';
  return (
    <button
      type="button"
      className={`live live-${state}`}
      aria-pressed={paused}
      aria-label={`${words}. ${paused ? 'Resume' : 'Pause'} live updates`}
      title={paused ? 'Resume live updates' : 'Pause live updates'}
      onClick={() => setPaused(!paused)}
    >
      <span className="live-dot" aria-hidden="true" />
      <span className="live-words">{words}</span>
      <Icon name={paused ? 'play' : 'pause'} size={14} />
    </button>
  );
}
