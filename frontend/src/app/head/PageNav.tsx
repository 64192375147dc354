import { Link, useLocation, useSearch } from "wouter";
import { usePreferences } from "@/state/preferences";
import { loopAddress } from "@/state/unsaved";
import { classes } from "@/ui/classes";

const LOOPS = { href: "/loops", label: "Loops" };
const RUNS = { href: "/runs", label: "Runs" };

export function PageNav() {
  const [location] = useLocation();
  const lastLoop = usePreferences((state) => state.lastLoop);
  const loop = /^\/loops\/([^/]+)/.exec(location)?.[1] ?? lastLoop;
  const search = useSearch();
  const rewards =
    loop === null ? [] : [{ href: loopAddress(loop, "/rewards", search), label: "Rewards" }];
  return (
    <nav aria-label="Pages" className="flex items-center gap-1">
      {[LOOPS, RUNS, ...rewards].map(({ href, label }) => {
        const isHere = location === href.split("?")[0];
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
