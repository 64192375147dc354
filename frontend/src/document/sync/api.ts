import type * as routes from "@/api/routes";

/** What keeping a loop in step asks of the server. */
export type SyncApi = Pick<
  typeof routes,
  "check" | "parseYaml" | "patchYaml" | "dumpSpec" | "saveLoop" | "fetchLoop" | "createLoop"
>;
