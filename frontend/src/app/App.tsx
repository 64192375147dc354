import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { Component, type ErrorInfo, lazy, type ReactNode, Suspense } from "react";
import { Toaster } from "sonner";
import { Redirect, Route, Switch } from "wouter";
import { ApiError, listenUnauthorised, OfflineError, waitFor } from "@/api/client";
import { signIn } from "@/api/routes";
import { TICKET_CHANGED, TOKEN_CAME, takeToken, ticket } from "@/api/ticket";
import { DropZone } from "@/features/loops/DropZone";
import { TrustDialog, useTrust } from "@/features/runs/start/TrustDialog";
import { listenToPresses } from "@/state/choosing";
import { useDialogs } from "@/state/dialogs";
import { startTheme, useResolvedTheme } from "@/state/theme";
import { Button } from "@/ui/Button";
import { TooltipProvider } from "@/ui/Tooltip";
import { AppSkeleton } from "./AppSkeleton";
import { SignInDialog } from "./head/SignInDialog";
import { DialogOnce, MountOnce } from "./MountOnce";
import { StartPage } from "./StartPage";

/** Signing in by the address, and what becomes of the page when a ticket comes or goes, in this tab or another. */
const askToken = () => useDialogs.getState().show("signIn");

function startSigningIn(client: QueryClient): void {
  listenUnauthorised(askToken);
  globalThis.addEventListener?.(TOKEN_CAME, exchange);
  globalThis.addEventListener?.(TICKET_CHANGED, () => {
    if (ticket() === null) askToken();
    else if (useDialogs.getState().open === "signIn") {
      useDialogs.getState().show(null);
      void client.resetQueries();
    }
  });
  exchange();
}

/** A token that is not taken is asked for by the first request that is refused. */
function exchange(): void {
  const token = takeToken();
  if (token !== undefined) waitFor(signIn(token));
}

const EditorPage = lazy(() =>
  import("./EditorPage").then((module) => ({ default: module.EditorPage })),
);
const RewardsPage = lazy(() =>
  import("./RewardsPage").then((module) => ({ default: module.RewardsPage })),
);
const LoopsPage = lazy(() =>
  import("./LoopsPage").then((module) => ({ default: module.LoopsPage })),
);
const RunsPage = lazy(() => import("./RunsPage").then((module) => ({ default: module.RunsPage })));
const ComparePage = lazy(() =>
  import("./ComparePage").then((module) => ({ default: module.ComparePage })),
);
const RunPage = lazy(() => import("./RunPage").then((module) => ({ default: module.RunPage })));

startTheme();
listenToPresses();

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5000,
      // Only a server that is away may answer later; everything else is an answer.
      retry: (count, error) => error instanceof OfflineError && count < 3,
      refetchOnWindowFocus: (query) => !(query.state.error instanceof ApiError),
    },
  },
});
startSigningIn(client);

export function App() {
  const isTrustAsked = useTrust((state) => state.asking !== null);
  return (
    <QueryClientProvider client={client}>
      <TooltipProvider>
        <Toasts />
        <CrashBoundary>
          <Suspense fallback={<AppSkeleton />}>
            <DropZone>
              <Switch>
                <Route path="/" component={StartPage} />
                <Route path="/loops" component={LoopsPage} />
                <Route path="/loops/:id">{({ id }) => <EditorPage key={id} id={id} />}</Route>
                <Route path="/loops/:id/rewards">
                  {({ id }) => <RewardsPage key={id} id={id} />}
                </Route>
                <Route path="/runs" component={RunsPage} />
                <Route path="/runs/compare" component={ComparePage} />
                <Route path="/runs/:id">{({ id }) => <RunPage key={id} id={id} />}</Route>
                <Route>
                  <Redirect to="/" replace />
                </Route>
              </Switch>
            </DropZone>
          </Suspense>
        </CrashBoundary>
        <DialogOnce dialog="signIn">
          <SignInDialog />
        </DialogOnce>
        <MountOnce when={isTrustAsked}>
          <TrustDialog />
        </MountOnce>
      </TooltipProvider>
    </QueryClientProvider>
  );
}

/** Where messages appear. */
function Toasts() {
  const theme = useResolvedTheme();
  return (
    <Toaster
      theme={theme}
      position="bottom-center"
      visibleToasts={3}
      expand
      offset={44}
      duration={2500}
      className="toasts"
    />
  );
}

interface CrashState {
  error: Error | null;
}

/** A fault of the page itself. The loop is saved or lies in this browser, so loading again is safe. */
class CrashBoundary extends Component<{ children: ReactNode }, CrashState> {
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
