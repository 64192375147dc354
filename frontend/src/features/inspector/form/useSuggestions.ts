import { useMemo } from "react";
import type { Catalog } from "@/api/types";
import { useCatalog, useDocument } from "@/document/context";
import { phaseNames } from "@/document/phases";
import { teachingPorts } from "@/document/teaching";
import type { LoopDocument } from "@/document/types";
import { isObject } from "@/lib/paths";

const NONE: string[] = [];

/** Names that exist already and that a field with this widget may want. */
export function useSuggestions(widget: string | null): string[] {
  const catalog = useCatalog();
  const document = useDocument((state) => (widget === null ? null : state.document));
  return useMemo(
    () => (document === null || widget === null ? NONE : suggest(catalog, document, widget)),
    [catalog, document, widget],
  );
}

function suggest(catalog: Catalog, document: LoopDocument, widget: string): string[] {
  switch (widget) {
    case "node":
      return Object.keys(document.nodes);
    case "port":
      return teachingPorts(catalog, document).map((one) => one.name);
    case "phase":
      return phaseNames(document);
    case "pool": {
      const hardware = document.rest.hardware;
      const pools =
        isObject(hardware) && isObject(hardware.pools) ? Object.keys(hardware.pools) : [];
      return pools.length > 0 ? pools : ["main"];
    }
    case "architecture":
    case "model":
      return (catalog.architectures ?? []).map((one) => (typeof one === "string" ? one : one.name));
    default:
      return NONE;
  }
}
