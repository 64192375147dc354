import { Component, type ErrorInfo, type ReactNode } from "react";
import { Button } from "@/ui/Button";

interface CrashState {
  error: Error | null;
}

/** A fault of the page itself. The loop is saved or lies in this browser, so loading again is safe. */
export class CrashBoundary extends Component<{ children: ReactNode }, CrashState> {
  override state: CrashState = { error: null };

  static getDerivedStateFromError(error: Error): CrashState {
    return { error };
  }

  override componentDidCatch(error: Error, info: ErrorInfo): void {
    console.error(error, info.componentStack);
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <main
        role="alert"
        className="flex h-full flex-col items-center justify-center gap-3 p-6 text-center"
      >
        <h1 className="font-semibold text-lg">Something went wrong</h1>
        <p className="max-w-md text-muted text-sm">
          Your loop is saved on the server or kept in this browser. Runs continue without the page.
        </p>
        <pre className="max-w-2xl overflow-auto rounded-2 border border-line bg-surface p-3 text-left text-xs">
          {error.message}
        </pre>
        <Button look="primary" onClick={() => location.reload()}>
          Reload
        </Button>
      </main>
    );
  }
}
