/**
 * HTTP to the service: one client, typed by the API's description, and its errors. Every request brings the ticket of
 * this origin. Knows nothing of what the routes mean.
 */
import createClient from "openapi-fetch";
import type { Diagnostic, ErrorBody, paths } from "./schema.gen";
import { keepTicket, ticket } from "./ticket";

export class ApiError extends Error {
  override name = "ApiError";

  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly detail: unknown,
  ) {
    super(message);
  }

  /** What the service found in a loop that it refused. */
  get diagnostics(): readonly Diagnostic[] {
    return (this.detail as { diagnostics?: Diagnostic[] } | null)?.diagnostics ?? [];
  }
}

export class OfflineError extends Error {
  override name = "OfflineError";
  override message = "The coloop server is not responding.";
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

let onUnauthorised = () => {};

/** Called when the service asks the user to sign in. */
export function listenUnauthorised(listener: () => void): void {
  onUnauthorised = listener;
}

let entering: Promise<unknown> = Promise.resolve();

/** Requests wait until this is over, such as the exchange of a token for a ticket. */
export function waitFor(signingIn: Promise<unknown>): void {
  entering = signingIn.catch(() => {});
}

/** A client of the routes that `openapi.json` describes; what it answers is read with `read`. */
export const client = createClient<paths>({
  baseUrl: globalThis.location?.origin ?? "http://localhost",
  headers: { Accept: "application/json" },
  fetch: send,
});

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** What a route answers; throws what went wrong. */
export async function read<T>(asked: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await asked;
  if (!response.ok) throw errorOf(response, error);
  return data as T;
}

export interface Page<T> {
  items: T[];
  total: number;
  next?: string;
}

export async function readPage<T>(asked: Promise<Answer<T[]>>): Promise<Page<T>> {
  const { response } = await asked;
  const items = await read(asked);
  const total = Number(response.headers.get("X-Total-Count") ?? items.length);
  const next = response.headers.get("X-Next-Cursor");
  return next === null ? { items, total } : { items, total, next };
}

async function send(request: Request): Promise<Response> {
  await entering;
  const brought = ticket();
  if (brought !== null) request.headers.set("Authorization", `Bearer ${brought}`);
  const response = await sendBare(request);
  if (response.status === 401) {
    // The server no longer takes it; another tab may have a new one by then.
    if (brought !== null && brought === ticket()) keepTicket(null);
    onUnauthorised();
  }
  return response;
}

/** Without a ticket and at once: for signing in, which all other requests wait for. */
export async function sendBare(request: Request): Promise<Response> {
  try {
    return await fetch(request);
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new OfflineError();
  }
}

function errorOf(response: Response, error: unknown): Error {
  // A development proxy answers for a server that is down.
  if (response.status === 502 || response.status === 503 || response.status === 504) {
    return new OfflineError();
  }
  const told = typeof error === "object" ? error : null;
  const { code, message, detail }: Partial<ErrorBody> = told ?? {};
  const { status, statusText } = response;
  return new ApiError(status, code ?? String(status), message ?? statusText, detail ?? told);
}

export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export async function readFile(address: string): Promise<Blob> {
  return (await fetch(address)).blob();
}
