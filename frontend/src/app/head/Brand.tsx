import { Link } from "wouter";

export function Brand() {
  return (
    <Link
      href="/loops"
      aria-label="coloop, all loops"
      className="flex shrink-0 items-center gap-2 rounded-2 px-1 font-semibold text-base tracking-tight"
    >
      <svg width="24" height="24" viewBox="0 0 32 32" aria-hidden="true">
        <rect width="32" height="32" rx="8" fill="var(--accent)" />
        <g fill="none" stroke="#fff" strokeWidth="2.6" strokeLinecap="round">
          <path d="M22.5 10.2a8.4 8.4 0 1 0 0 11.6" />
          <path d="M13 16h11" />
        </g>
        <circle cx="24" cy="16" r="3" fill="#fff" />
      </svg>
      <span className="max-lg:hidden">coloop</span>
    </Link>
  );
}
