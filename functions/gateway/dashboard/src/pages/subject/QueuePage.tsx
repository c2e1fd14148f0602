import { useParams } from '@tanstack/react-router';
import { SubjectPage } from './SubjectPage';

export default function QueuePage() {
  const { queue = '' } = useParams({ strict: false }) as { queue?: string };
  return <SubjectPage key={queue} subject={{ kind: 'queue', name: queue }} />;
}
