import { useParams } from '@tanstack/react-router';
import { SubjectPage } from './SubjectPage';

export default function TypePage() {
  const { jobType = '' } = useParams({ strict: false }) as { jobType?: string };
  return <SubjectPage key={jobType} subject={{ kind: 'type', name: jobType }} />;
}
