import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import {
  Component,
  type ErrorInfo,
  lazy,
  type ReactNode,
  Suspense,
  useCallback,
  useEffect,
  useRef,
  useState,
} from "react";
import { Toaster } from "sonner";
import { Link, Redirect, Route, Switch, useLocation } from "wouter";
import { ApiError, errorMessage, listenUnauthorised, OfflineError, waitFor } from "@/api/client";
import { fetchLoop, fetchLoopPresets, fetchLoops, signIn } from "@/api/routes";
import { TICKET_CHANGED, TOKEN_CAME, takeToken, ticket } from "@/api/ticket";
import { DropZone } from "@/features/loops/DropZone";
import { TrustDialog, useTrust } from "@/features/runs/start/TrustDialog";
import { listenToPresses } from "@/state/choosing";
import { showDialog, useDialogs } from "@/state/dialogs";
import { usePreferences } from "@/state/preferences";
import { startTheme, useResolvedTheme } from "@/state/theme";
import { presetAddress } from "@/state/unsaved";
import { Button } from "@/ui/Button";
import { WIDE_CONTROL } from "@/ui/control";
import { Dialog } from "@/ui/Dialog";
import { Failed } from "@/ui/States";
import { TooltipProvider } from "@/ui/Tooltip";
import { AppSkeleton } from "./AppSkeleton";
import { DialogOnce, MountOnce } from "./MountOnce";

/** Signing in by the address, and what becomes of the page when a ticket comes or goes, in this tab or another. */
const askToken = () => showDialog("signIn");

function startSigningIn(client: QueryClient): void {
  listenUnauthorised(askToken);
  globalThis.addEventListener?.(TOKEN_CAME, exchange);
  globalThis.addEventListener?.(TICKET_CHANGED, () => {
    if (ticket() === null) askToken();
    else if (useDialogs.getState().open === "signIn") {
      showDialog(null);
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
const ControlsPage = lazy(() =>
  import("./ControlsPage").then((module) => ({ default: module.ControlsPage })),
);
const SweepPage = lazy(() =>
  import("./SweepPage").then((module) => ({ default: module.SweepPage })),
);
const ReportPage = lazy(() =>
  import("./ReportPage").then((module) => ({ default: module.ReportPage })),
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
                <Route path="/runs/:id/controls">
                  {({ id }) => <ControlsPage key={id} id={id} />}
                </Route>
                <Route path="/runs/:id/report">{({ id }) => <ReportPage key={id} id={id} />}</Route>
                <Route path="/sweeps/:name">
                  {({ name }) => <SweepPage key={name} name={name} />}
                </Route>
                <Route path="/runs/:id">{({ id }) => <RunPage key={id} id={id} />}</Route>
                <Route>
                  <Redirect to="/" replace />
                </Route>
              </Switch>
            </DropZone>
          </Suspense>
        </CrashBoundary>
        <DialogOnce name="signIn" of={SignInDialog} />
        <MountOnce when={isTrustAsked}>
          <TrustDialog />
        </MountOnce>
      </TooltipProvider>
    </QueryClientProvider>
  );
}

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

function SignInDialog() {
  const isOpen = useDialogs((state) => state.open === "signIn");
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState<string | null>(null);

  const send = async (event: React.FormEvent) => {
    event.preventDefault();
    try {
      await signIn(token);
      setToken("");
      setProblem(null);
    } catch (error) {
      setProblem(errorMessage(error));
    }
  };
  return (
    <Dialog
      title="Sign in"
      description="This server requires a token. You can find it in the address that the server printed when it started, or in the file “token” in its data folder."
      isOpen={isOpen}
      isBlocking
      onClose={() => {}}
    >
      <form onSubmit={(event) => void send(event)} className="flex flex-col gap-3">
        <label className="flex flex-col gap-1 text-sm">
          Token
          <input
            type="password"
            autoComplete="current-password"
            className={WIDE_CONTROL}
            value={token}
            aria-invalid={problem !== null || undefined}
            onChange={(event) => setToken(event.target.value)}
          />
        </label>
        {problem ? (
          <p role="alert" className="text-error text-sm">
            {problem}
          </p>
        ) : null}
        <Button type="submit" look="primary" className="self-end" disabled={token === ""}>
          Sign in
        </Button>
      </form>
    </Dialog>
  );
}

const QUICK_START = "grpo-arithmetic";

function StartPage() {
  const [, navigate] = useLocation();
  const [error, setError] = useState<unknown>(null);
  const started = useRef(false);

  const go = useCallback(async () => {
    setError(null);
    try {
      navigate(await findLoop(), { replace: true });
    } catch (problem) {
      setError(problem);
    }
  }, [navigate]);

  useEffect(() => {
    if (started.current) return;
    started.current = true;
    void go();
  }, [go]);

  if (error)
    return (
      <main className="flex h-full flex-col items-center justify-center">
        <div>
          <Failed title="coloop could not be opened" error={error} onRetry={() => void go()} />
        </div>
        <Link href="/loops" className="text-accent-text text-sm underline">
          All loops and presets
        </Link>
      </main>
    );
  return <AppSkeleton />;
}

async function findLoop(): Promise<string> {
  const { lastLoop } = usePreferences.getState();
  if (lastLoop) {
    try {
      return addressOf(await fetchLoop(lastLoop));
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
    }
  }
  const loops = await fetchLoops();
  const newest = loops.toSorted((a, b) => b.updated_at.localeCompare(a.updated_at))[0];
  if (newest) return addressOf(newest);
  const presets = await fetchLoopPresets();
  const first = presets.find((preset) => preset.name === QUICK_START) ?? presets[0];
  if (!first) throw new Error("There is no preset to start with.");
  return presetAddress(first.name);
}

function addressOf(loop: { id: string }): string {
  return `/loops/${loop.id}`;
}
