/** Logo is two threads that cross. */
export function Logo() {
  return (
    <svg className="logo" width="28" height="28" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="8" fill="#3b5bdb" />
      <path
        d="M7 11h8a4 4 0 0 1 4 4v2a4 4 0 0 0 4 4h2M7 21h4a4 4 0 0 0 4-4v-2a4 4 0 0 1 4-4h6"
        fill="none"
        stroke="#fff"
        strokeWidth="2.6"
        strokeLinecap="round"
      />
    </svg>
  );
}
