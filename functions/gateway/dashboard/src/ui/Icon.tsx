// Each icon is the paths of a 24×24 drawing with round strokes.
const drawings = {
  overview: 'M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-3H4zM14 7h6V4h-6z',
  jobs: 'M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01',
  batches: 'M12 4 3 8.5l9 4.5 9-4.5zM4 12.5l8 4 8-4M4 16.5l8 4 8-4',
  flows: 'M4 4h5v5H4zM15 4h5v5h-5zM15 15h5v5h-5zM9 6.5h6M6.5 9v8.5H15',
  dead: 'M12 9v4M12 17h.01M10.3 3.9 2.6 17.2A2 2 0 0 0 4.3 20h15.4a2 2 0 0 0 1.7-2.8L13.7 3.9a2 2 0 0 0-3.4 0z',
  rejected: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM5.7 5.7l12.6 12.6',
  new: 'M12 5v14M5 12h14',
  schedules: 'M8 3v4M16 3v4M4 9h16M5 5h14a1 1 0 0 1 1 1v13a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1z',
  alerts: 'M6 16v-5a6 6 0 0 1 12 0v5l2 2H4zM10 21h4',
  controls: 'M4 7h10M18 7h2M4 17h2M10 17h10M16 4.5v5M8 14.5v5',
  workers: 'M4 5h16v6H4zM4 13h16v6H4zM7.5 8h.01M7.5 16h.01',
  operations: 'M13 3 5 14h6l-1 7 8-11h-6z',
  audit: 'M9 4h6v3H9zM15 5h3v15H6V5h3M9 12h6M9 16h4',
  user: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM5 20a7 7 0 0 1 14 0',
  keys: 'M15 9.5a4.5 4.5 0 1 1-4.2-4.5A4.5 4.5 0 0 1 15 9.5zM13.8 12.5 20 19M17.5 16.5l2-2',
  search: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM20 20l-4-4',
  menu: 'M4 6h16M4 12h16M4 18h16',
  close: 'M6 6l12 12M18 6 6 18',
  check: 'm5 12 5 5 9-10',
  down: 'm6 9 6 6 6-6',
  right: 'm9 6 6 6-6 6',
  sun: 'M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 2v2M12 20v2M4.9 4.9l1.4 1.4M17.7 17.7l1.4 1.4M2 12h2M20 12h2M4.9 19.1l1.4-1.4M17.7 6.3l1.4-1.4',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z',
  system: 'M4 5h16v11H4zM9 20h6M12 16v4',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  retry: 'M4 12a8 8 0 0 1 14-5.3L20 9M20 4v5h-5M20 12a8 8 0 0 1-14 5.3L4 15M4 20v-5h5',
  cancel: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM15 9l-6 6M9 9l6 6',
  clock: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7v5l3 2',
  trash: 'M5 7h14M10 4h4M7 7l1 13h8l1-13M10 11v5M14 11v5',
  pause: 'M8 5v14M16 5v14',
  play: 'M7 5v14l11-7z',
  filter: 'M4 5h16l-6 8v6l-4-2v-4z',
  columns: 'M4 5h16v14H4zM10 5v14M15 5v14',
  save: 'M6 4h12v16l-6-4-6 4z',
  logout: 'M14 4h5v16h-5M4 12h10M10 8l4 4-4 4',
  link: 'M10 14a4 4 0 0 0 6 .4l3-3a4 4 0 0 0-5.7-5.7l-1 1M14 10a4 4 0 0 0-6-.4l-3 3a4 4 0 0 0 5.7 5.7l1-1',
  edit: 'M4 20h4L19 9l-4-4L4 16z',
  minus: 'M5 12h14',
  fit: 'M4 4v16M20 4v16M8 12h8M10 9l-3 3 3 3M14 9l3 3-3 3',
  turn: 'M5 5v8a4 4 0 0 0 4 4h10M15 13l4 4-4 4M2 8l3-3 3 3',
  keyboard: 'M3 6h18v12H3zM7 10h.01M11 10h.01M15 10h.01M8 14h8',
} as const;

export type IconName = keyof typeof drawings;

interface Props {
  name: IconName;
  size?: number;
}

/** Icon is decoration; the text beside it, or the label of its button, has the meaning. */
export function Icon({ name, size = 16 }: Props) {
  return (
    <svg className="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={drawings[name]} fill="none" stroke="currentColor" strokeWidth="2" strokeLinecap="round" strokeLinejoin="round" />
    </svg>
  );
}
