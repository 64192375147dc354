/**
 * HTTP to the service: one request function and its errors. Signing in sets a cookie, so no secret is held here.
 * Knows nothing of what the routes mean.
 */

export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly detail: unknown;

  constructor(status: number, code: string, message: string, detail: unknown) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.detail = detail;
  }
}

/** The service did not answer at all. */
export class OfflineError extends Error {
  constructor() {
    super("The coloop server does not answer.");
    this.name = "OfflineError";
  }
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

type Unauthorised = () => void;
let onUnauthorised: Unauthorised = () => {};

/** Called when the service asks the user to sign in. */
export function listenUnauthorised(listener: Unauthorised): void {
  onUnauthorised = listener;
}

export interface RequestOptions {
  body?: unknown;
  signal?: AbortSignal | undefined;
  headers?: Record<string, string>;
  query?: Record<string, string | number | null | undefined>;
}

export async function request<T>(
  method: string,
  path: string,
  options: RequestOptions = {},
): Promise<T> {
  const response = await send(method, path, options);
  if (response.status === 204) return undefined as T;
  return (await response.json()) as T;
}

/** Some of many, and how many there are in all. */
export interface Page<T> {
  items: T[];
  total: number;
}

export async function requestPage<T>(
  path: string,
  query: NonNullable<RequestOptions["query"]>,
): Promise<Page<T>> {
  const response = await send("GET", path, { query });
  const items = (await response.json()) as T[];
  return { items, total: Number(response.headers.get("X-Total-Count") ?? items.length) };
}

export async function requestText(path: string): Promise<string> {
  return (await send("GET", path, {})).text();
}

async function send(method: string, path: string, options: RequestOptions): Promise<Response> {
  const headers: Record<string, string> = { Accept: "application/json", ...options.headers };
  const init: RequestInit = { method, headers, signal: options.signal ?? null };
  if (options.body !== undefined) {
    headers["Content-Type"] = "application/json";
    init.body = JSON.stringify(options.body);
  }
  let response: Response;
  try {
    response = await fetch(withQuery(`/api${path}`, options.query), init);
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new OfflineError();
  }
  if (response.status === 401) onUnauthorised();
  if (!response.ok) throw await readError(response);
  return response;
}

function withQuery(path: string, query: RequestOptions["query"]): string {
  if (!query) return path;
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== null && value !== undefined) search.set(key, String(value));
  }
  const text = search.toString();
  return text === "" ? path : `${path}?${text}`;
}

async function readError(response: Response): Promise<Error> {
  // A development proxy answers for a server that is down.
  if (response.status === 502 || response.status === 503 || response.status === 504) {
    return new OfflineError();
  }
  try {
    const body = (await response.json()) as { code?: string; message?: string; detail?: unknown };
    return new ApiError(
      response.status,
      body.code ?? String(response.status),
      body.message ?? response.statusText,
      body.detail ?? body,
    );
  } catch {
    return new ApiError(response.status, String(response.status), response.statusText, null);
  }
}

export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
