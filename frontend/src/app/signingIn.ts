/** Signing in by the address, and what becomes of the page when a ticket comes or goes, in this tab or another. */
import type { QueryClient } from "@tanstack/react-query";
import { listenUnauthorised, waitFor } from "@/api/client";
import { signIn } from "@/api/routes";
import { TICKET_CHANGED, TOKEN_CAME, takeToken, ticket } from "@/api/ticket";
import { useDialogs } from "@/session/dialogs";

const askToken = () => useDialogs.getState().show("signIn");

export function startSigningIn(client: QueryClient): void {
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
