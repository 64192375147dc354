import { Link, useLocation } from "wouter";
import { classes } from "@/ui/classes";

const PAGES = [
  { href: "/loops", label: "Loops" },
  { href: "/runs", label: "Runs" },
];

export function PageNav() {
  const [location] = useLocation();
  return (
    <nav aria-label="Pages" className="flex items-center gap-1">
      {PAGES.map(({ href, label }) => {
        const isHere = location === href;
        return (
          <Link
            key={href}
            href={href}
            aria-current={isHere ? "page" : undefined}
            className={classes(
              "flex h-7 items-center rounded-2 px-2 text-sm",
              isHere ? "bg-hover font-medium" : "text-muted hover:bg-hover hover:text-text",
            )}
          >
            {label}
          </Link>
        );
      })}
    </nav>
  );
}
