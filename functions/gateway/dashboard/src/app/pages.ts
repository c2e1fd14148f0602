import type { ComponentType } from 'react';
import type { Need } from '../api/me';
import type { IconName } from '../ui/Icon';

export interface Page {
  path: string; // as TanStack Router writes it: /jobs/$jobId
  title: string;
  needs: Need; // without it, the page is neither in the navigation nor shown at its address
  load: () => Promise<{ default: ComponentType }>;
  nav?: { group: 'Jobs' | 'Installation'; icon: IconName; keys: string };
}

/** pages are all pages of the dashboard. The navigation, the command palette and the shortcuts list those with nav, in this order. */
export const pages: readonly Page[] = [
  {
    path: '/',
    title: 'Overview',
    needs: 'read',
    load: () => import('../pages/overview/OverviewPage'),
    nav: { group: 'Jobs', icon: 'overview', keys: 'g o' },
  },
  {
    path: '/jobs',
    title: 'Jobs',
    needs: 'read',
    load: () => import('../pages/jobs/JobsPage'),
    nav: { group: 'Jobs', icon: 'jobs', keys: 'g j' },
  },
  {
    path: '/jobs/$jobId',
    title: 'Job',
    needs: 'read',
    load: () => import('../pages/job/JobPage'),
  },
  {
    path: '/batches',
    title: 'Batches',
    needs: 'read',
    load: () => import('../pages/batches/BatchesPage'),
    nav: { group: 'Jobs', icon: 'batches', keys: 'g b' },
  },
  {
    path: '/batches/$batchId',
    title: 'Batch',
    needs: 'read',
    load: () => import('../pages/batches/BatchPage'),
  },
  {
    path: '/flows',
    title: 'Flows',
    needs: 'read',
    load: () => import('../pages/flows/FlowsPage'),
    nav: { group: 'Jobs', icon: 'flows', keys: 'g f' },
  },
  {
    path: '/flows/$flowId',
    title: 'Flow',
    needs: 'read',
    load: () => import('../pages/flows/FlowPage'),
  },
  {
    path: '/new',
    title: 'New job',
    needs: 'submit',
    load: () => import('../pages/new/NewJobPage'),
    nav: { group: 'Jobs', icon: 'new', keys: 'g n' },
  },
  {
    path: '/dead',
    title: 'Dead letters',
    needs: 'read',
    load: () => import('../pages/dead/DeadPage'),
    nav: { group: 'Jobs', icon: 'dead', keys: 'g d' },
  },
  {
    path: '/queues/$queue',
    title: 'Queue',
    needs: 'read',
    load: () => import('../pages/subject/QueuePage'),
  },
  {
    path: '/types/$jobType',
    title: 'Job type',
    needs: 'read',
    load: () => import('../pages/subject/TypePage'),
  },
  {
    path: '/rejected',
    title: 'Rejected records',
    needs: 'installation',
    load: () => import('../pages/rejected/RejectedPage'),
    nav: { group: 'Installation', icon: 'rejected', keys: 'g r' },
  },
  {
    path: '/schedules',
    title: 'Schedules',
    needs: 'read',
    load: () => import('../pages/schedules/SchedulesPage'),
    nav: { group: 'Installation', icon: 'schedules', keys: 'g s' },
  },
  {
    path: '/schedules/$name',
    title: 'Schedule',
    needs: 'read',
    load: () => import('../pages/schedules/SchedulePage'),
  },
  {
    path: '/alerts',
    title: 'Alerts',
    needs: 'read',
    load: () => import('../pages/alerts/AlertsPage'),
    nav: { group: 'Installation', icon: 'alerts', keys: 'g e' },
  },
  {
    path: '/alerts/$name',
    title: 'Alert',
    needs: 'read',
    load: () => import('../pages/alerts/AlertPage'),
  },
  {
    path: '/controls',
    title: 'Limits and pauses',
    needs: 'read',
    load: () => import('../pages/controls/ControlsPage'),
    nav: { group: 'Installation', icon: 'controls', keys: 'g l' },
  },
  {
    path: '/workers',
    title: 'Workers',
    needs: 'read',
    load: () => import('../pages/workers/WorkersPage'),
    nav: { group: 'Installation', icon: 'workers', keys: 'g w' },
  },
  {
    path: '/operations',
    title: 'Operations',
    needs: 'read',
    load: () => import('../pages/operations/OperationsPage'),
    nav: { group: 'Installation', icon: 'operations', keys: 'g p' },
  },
  {
    path: '/operations/$operationId',
    title: 'Operation',
    needs: 'read',
    load: () => import('../pages/operations/OperationPage'),
  },
  {
    path: '/audit',
    title: 'Audit',
    needs: 'admin',
    load: () => import('../pages/audit/AuditPage'),
    nav: { group: 'Installation', icon: 'audit', keys: 'g a' },
  },
  {
    path: '/keys',
    title: 'API keys',
    needs: 'admin',
    load: () => import('../pages/keys/KeysPage'),
    nav: { group: 'Installation', icon: 'keys', keys: 'g k' },
  },
];
