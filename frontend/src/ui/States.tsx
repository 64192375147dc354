import type { UseQueryResult } from "@tanstack/react-query";
import { CircleAlert } from "lucide-react";
import type { ReactNode } from "react";
import { errorMessage } from "@/api/client";
import { Button } from "./Button";

interface EmptyProps {
  icon?: ReactNode;
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}

export function Empty({ icon, title, children, action }: EmptyProps) {
  return (
    <div className="flex h-full flex-col items-center justify-center gap-2 p-6 text-center">
      {icon ? <div className="text-faint">{icon}</div> : null}
      <p className="font-medium text-sm">{title}</p>
      {children ? <div className="max-w-96 text-muted text-sm">{children}</div> : null}
      {action ? <div className="mt-2">{action}</div> : null}
    </div>
  );
}

interface FailedProps {
  title: string;
  error: unknown;
  onRetry?: () => void;
}

export function Failed({ title, error, onRetry }: FailedProps) {
  return (
    <div
      role="alert"
      className="flex h-full flex-col items-center justify-center gap-2 p-6 text-center"
    >
      <CircleAlert className="text-error" size={24} />
      <p className="font-medium text-sm">{title}</p>
      <p className="max-w-96 text-muted text-sm">{errorMessage(error)}</p>
      {onRetry ? <Button onClick={onRetry}>Try again</Button> : null}
    </div>
  );
}

export function Loading({ label, rows = 3 }: { label: string; rows?: number }) {
  return (
    <div role="status" aria-label={label} className="flex flex-col gap-3 p-4">
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} className="skeleton h-5" style={{ width: `${92 - row * 14}%` }} />
      ))}
    </div>
  );
}

interface UnansweredProps {
  query: Pick<UseQueryResult, "error" | "isError" | "refetch">;
  loading: string;
  rows?: number;
  failed: string;
}

export function Unanswered({ query, loading, rows = 3, failed }: UnansweredProps) {
  if (!query.isError) return <Loading label={loading} rows={rows} />;
  return <Failed title={failed} error={query.error} onRetry={() => void query.refetch()} />;
}

interface AnswerProps<T> extends UnansweredProps {
  query: Pick<UseQueryResult<T>, "data" | "error" | "isError" | "refetch">;
  children: (data: T) => ReactNode;
}

export function Answer<T>({ children, ...rest }: AnswerProps<T>) {
  const { data } = rest.query;
  return data === undefined ? <Unanswered {...rest} /> : children(data);
}
