import type * as routes from "@/api/routes";

/** What keeping a loop in step asks of the server. */
export type SyncApi = Pick<
  typeof routes,
  "saveDocument" | "check" | "fetchLoop" | "patchYaml" | "createLoop"
>;
