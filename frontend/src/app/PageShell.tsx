import type { ReactNode } from "react";
import { Link } from "wouter";
import { ApiError } from "@/api/client";
import { classes } from "@/ui/classes";
import { Empty, Failed } from "@/ui/States";
import { AppSkeleton } from "./AppSkeleton";
import { Brand } from "./head/Brand";
import { PageNav } from "./head/PageNav";
import { ThemeMenu } from "./head/ThemeMenu";

interface PageShellProps {
  title: string;
  actions?: ReactNode;
  isWide?: boolean;
  children: ReactNode;
}

export function PageShell({ title, actions, isWide = false, children }: PageShellProps) {
  return (
    <div className="flex h-full flex-col print:block print:h-auto">
      <PageHeader>
        <span className="flex-1" />
        <ThemeMenu />
      </PageHeader>
      <main className="min-h-0 flex-1 overflow-y-auto print:overflow-visible">
        <div className={classes("mx-auto px-6 py-6", isWide ? "max-w-[1600px]" : "max-w-6xl")}>
          <div className="mb-4 flex flex-wrap items-center gap-2">
            <h1 className="min-w-0 flex-1 truncate font-semibold text-xl">{title}</h1>
            {actions}
          </div>
          {children}
        </div>
      </main>
    </div>
  );
}

export function PageHeader({ children }: { children: ReactNode }) {
  return (
    <header className="flex h-12 shrink-0 items-center gap-2 border-line border-b bg-surface px-3 print:hidden">
      <Brand />
      <PageNav />
      {children}
    </header>
  );
}

interface UnopenedProps {
  title: string;
  /** Where all of them are listed, and what that is called. */
  href: string;
  all: string;
  error: unknown;
  onRetry: () => void;
  /** Why there may be none. */
  children: string;
}

/** In the place of a loop or a run that is not there, cannot be opened, or is not there yet. */
export function Unopened({ title, href, all, error, onRetry, children }: UnopenedProps) {
  if (!error) return <AppSkeleton />;
  if (!(error instanceof ApiError) || error.status !== 404) {
    const text = `The ${title.toLowerCase()} could not be opened`;
    return <Failed title={text} error={error} onRetry={onRetry} />;
  }
  return (
    <PageShell title={title}>
      <Empty
        title={`${title} not found`}
        action={
          <Link href={href} className="text-accent-text underline">
            {all}
          </Link>
        }
      >
        {children}
      </Empty>
    </PageShell>
  );
}
