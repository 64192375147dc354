/**
 * The ticket of this origin: stands for the server's token in every request, and is shared by all tabs. It is no
 * cookie, because a browser sends those of 127.0.0.1 to every port of it.
 */
import { stored } from "./stored";

const KEY = "coloop.ticket";
const kept = stored(KEY);
/** What the server answers to a WebSocket, and how the ticket is offered beside it. */
const PROTOCOL = "coloop.v1";

/** A ticket has come or gone, in this tab or in another one. */
export const TICKET_CHANGED = "coloop:ticket";
/** The address had a token; as `public/enter.js` calls it. */
export const TOKEN_CAME = "coloop:token";

declare global {
  interface Window {
    /** The token of the address, as `public/enter.js` left it. */
    coloopToken?: string;
  }
}

export const ticket = kept.read;

export function keepTicket(given: string | null): void {
  kept.write(given);
  globalThis.dispatchEvent?.(new Event(TICKET_CHANGED));
}

/** The protocols that a WebSocket offers: a page can give it no header. */
export function socketProtocols(): string[] {
  const brought = ticket();
  return brought === null ? [] : [PROTOCOL, `ticket.${brought}`];
}

export function takeToken(): string | undefined {
  const token = globalThis.window?.coloopToken;
  if (token !== undefined) delete window.coloopToken;
  return token;
}

globalThis.addEventListener?.("storage", (event) => {
  if (event.key === KEY || event.key === null) globalThis.dispatchEvent(new Event(TICKET_CHANGED));
});
