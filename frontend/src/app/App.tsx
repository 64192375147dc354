import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { Toaster } from "sonner";
import { Redirect, Route, Switch } from "wouter";
import { ApiError, listenUnauthorised, OfflineError, waitFor } from "@/api/client";
import { signIn } from "@/api/routes";
import { TICKET_CHANGED, TOKEN_CAME, takeToken, ticket } from "@/api/ticket";
import { DropZone } from "@/features/loops/DropZone";
import { TrustDialog } from "@/features/runs/TrustDialog";
import { useTrust } from "@/features/runs/trust";
import { listenToPresses } from "@/session/choosing";
import { useDialogs } from "@/session/dialogs";
import { startTheme, useResolvedTheme } from "@/session/theme";
import { TooltipProvider } from "@/ui/Tooltip";
import { AppSkeleton } from "./AppSkeleton";
import { Asked, Once } from "./Asked";
import { CrashBoundary } from "./CrashBoundary";
import { SignInDialog } from "./head/SignInDialog";
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
        <Asked dialog="signIn">
          <SignInDialog />
        </Asked>
        <Once when={isTrustAsked}>
          <TrustDialog />
        </Once>
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
