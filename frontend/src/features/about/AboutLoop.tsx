import { useQuery } from "@tanstack/react-query";
import { ExternalLink, FlaskConical, X } from "lucide-react";
import type { ReactNode } from "react";
import { fetchAboutPreset } from "@/api/routes";
import type { AboutPreset } from "@/api/types";
import { formatBytes, formatSeconds } from "@/lib/format";
import { useCatalog, useDocument, useNodeColors } from "@/state/document/context";
import { setPreferences, startTour, usePreferences } from "@/state/preferences";
import { select } from "@/state/selection";
import { Button } from "@/ui/Button";
import { classes } from "@/ui/classes";
import { IconButton } from "@/ui/IconButton";
import { KindIcon } from "@/ui/KindIcon";
import { RichText } from "@/ui/RichText";
import { Answer } from "@/ui/States";
import { useAbout } from "./useAbout";

export function AboutLoop() {
  const { preset, close } = useAbout();
  const about = useQuery({
    queryKey: ["about", preset],
    queryFn: () => fetchAboutPreset(preset ?? ""),
    enabled: preset !== null,
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (preset === null) return null;
  return (
    <section
      aria-label="About this loop"
      className={classes(
        about.isPending ? "h-[60%]" : "max-h-[60%]",
        "shrink-0 overflow-y-auto border-line border-b bg-surface px-4 pt-3 pb-4",
      )}
    >
      <header className="flex items-center gap-2">
        <p className="flex-1 font-medium text-accent-text text-xs">About this loop</p>
        <IconButton label="Close about" size="small" onClick={close} icon={<X size={14} />} />
      </header>
      <Answer
        query={about}
        loading="Loading the description"
        rows={4}
        failed="The description could not be loaded"
      >
        {(found) => <About about={found} />}
      </Answer>
    </section>
  );
}

function About({ about }: { about: AboutPreset }) {
  return (
    <div className="flex flex-col gap-3 text-sm">
      <div>
        <h2 className="font-semibold text-base leading-6">{about.lesson}</h2>
        <p className="mt-1">
          <RichText text={about.teaches} />
        </p>
      </div>
      <TourOffer />
      <CostFacts cost={about.cost} />
      <Part title="Expected curves">
        <ul className="flex flex-col gap-1.5">
          {about.curves.map(({ metric, expect }) => (
            <li key={metric} className="text-xs">
              <span className="font-medium font-mono">{metric}</span>
              <span className="block text-muted">
                <RichText text={expect} />
              </span>
            </li>
          ))}
        </ul>
      </Part>
      <Part title="What each node does">
        <AboutNodes nodes={about.nodes} />
      </Part>
      <p className="flex gap-2 rounded-2 bg-sunken px-3 py-2 text-xs">
        <FlaskConical size={14} aria-hidden="true" className="mt-0.5 shrink-0 text-accent-text" />
        <span>
          <span className="font-medium">Try this: </span>
          <RichText text={about.experiment} />
        </span>
      </p>
      {about.source ? (
        <a
          href={about.source}
          target="_blank"
          rel="noreferrer"
          className="inline-flex items-center gap-1 text-accent-text text-xs hover:underline"
        >
          The paper it is based on <ExternalLink size={12} aria-hidden="true" />
        </a>
      ) : null}
    </div>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <h3 className="mb-1 font-medium text-muted text-xs">{title}</h3>
      {children}
    </section>
  );
}

export function TourOffer() {
  const wasOffered = usePreferences((state) => state.wasTourOffered);
  if (wasOffered) return null;
  return (
    <p className="flex flex-wrap items-center gap-2 rounded-2 border border-line px-3 py-2 text-xs">
      <span className="min-w-32 flex-1">New here? Take a one-minute tour of the page.</span>
      <Button size="small" onClick={startTour}>
        Take the tour
      </Button>
      <Button size="small" look="quiet" onClick={() => setPreferences({ wasTourOffered: true })}>
        No, thanks
      </Button>
    </p>
  );
}

function AboutNodes({ nodes }: { nodes: AboutPreset["nodes"] }) {
  const catalog = useCatalog();
  const colors = useNodeColors();
  const there = useDocument((state) => state.document.nodes);
  return (
    <ul className="-mx-1 flex flex-col">
      {nodes.map(({ node, kind, does }) => (
        <li key={node}>
          <button
            type="button"
            aria-disabled={!(node in there) || undefined}
            title={node in there ? `Choose ${node}` : `${node} is no longer in the loop`}
            className="flex w-full gap-2 rounded-1 px-1 py-1 text-left text-xs hover:bg-hover aria-disabled:opacity-60"
            onClick={() => {
              if (node in there) select({ nodes: [node] });
            }}
          >
            <span className="pt-0.5" style={{ color: colors[node] ?? "var(--muted)" }}>
              <KindIcon name={catalog.kinds[kind]?.icon} size={14} />
            </span>
            <span className="min-w-0">
              <span className="font-medium font-mono">{node}</span>{" "}
              <span className="text-muted">
                <RichText text={does} />
              </span>
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}

function CostFacts({ cost }: { cost: AboutPreset["cost"] }) {
  const least = cost.is_whole ? "about " : "at least ";
  const step = `${formatSeconds(cost.step_seconds)} a step`;
  const facts: [string, string][] = [
    [
      "Time",
      `${least}${formatSeconds(cost.seconds)}, ${cost.phase ? `${step} of ${cost.phase}` : step}`,
    ],
    ["Memory", `${formatBytes(cost.memory_bytes)} ${cost.gpus > 0 ? "of the fullest GPU" : ""}`],
    [
      "Cost",
      cost.gpus > 0
        ? `${least}${hours(cost.gpu_hours)} GPU-hours on ${cost.hardware}`
        : "none, it runs on this machine",
    ],
  ];
  return (
    <div className="rounded-2 bg-sunken px-3 py-2 text-xs">
      <dl className="grid grid-cols-[auto_1fr] gap-x-3 gap-y-0.5">
        {facts.map(([name, text]) => (
          <div key={name} className="contents">
            <dt className="text-muted">{name}</dt>
            <dd className="tabular">{text}</dd>
          </div>
        ))}
      </dl>
      <p className="mt-0.5 text-muted">
        {cost.is_whole
          ? "Estimated; a phase may end earlier."
          : "Estimated for the phases with a known number of steps."}
      </p>
    </div>
  );
}

function hours(value: number): string {
  return value >= 10 ? Math.round(value).toLocaleString("en") : value.toFixed(1);
}
