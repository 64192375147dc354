import { useQuery } from "@tanstack/react-query";
import { toast } from "sonner";
import { cancelDownload, startDownload } from "@/api/routes";
import type { Bodies } from "@/api/types";
import { isObject } from "@/lib/paths";
import { addStored } from "@/state/addData";
import { setField } from "@/state/commands/fields";
import { useDocument, useOpenLoop, useSync } from "@/state/document/context";
import { hubQuery } from "@/state/queries";
import { useSelection } from "@/state/selection";
import { useAttempt } from "@/state/useAttempt";
import { shownModel } from "./shownModel";

/** What is on this machine, and what can be done with it in the open loop. */
export function useHub() {
  const query = useQuery(hubQuery);
  const { isBusy, attempt } = useAttempt("hub");
  const { catalog, store } = useOpenLoop();
  const mode = useSync((state) => state.check?.mode ?? null);
  const isReadonly = useDocument((state) => state.isReadonly);
  const nodes = useDocument((state) => state.document.nodes);
  const selected = useSelection((state) => state.nodes.at(-1));
  const withModel = Object.keys(nodes).filter((name) => isObject(nodes[name]?.model));
  const node = selected !== undefined && withModel.includes(selected) ? selected : withModel[0];
  const download = (body: Bodies["NewDownload"]) =>
    void attempt(() => startDownload(body), "The download was not started.");
  const cancel = (key: string) =>
    void attempt(() => cancelDownload(key), "The download was not cancelled.");
  const use = (path: string) => {
    if (node === undefined) return;
    const value = shownModel(nodes[node]?.model, path);
    store.dispatch(setField, { node, path: ["model"], value }, { label: `${node}: ${path}` });
    toast(`${node} starts from ${path}`);
  };
  const mode_ = catalog.modes.find(({ name }) => name === mode) ?? catalog.modes[0];
  const add = (path: string) =>
    void attempt(async () => {
      if (mode_) await addStored({ catalog, store, mode: mode_ }, path);
    }, `${path} was not added.`);
  return {
    query,
    isBusy,
    /** The node that gets a model: the selected one, or the first that has one; none in a loop without. */
    node: isReadonly ? undefined : node,
    isReadonly,
    download,
    cancel,
    use,
    add,
  };
}

export type UsedHub = ReturnType<typeof useHub>;
