// The files in deploy/ for monitoring a gateway: alerts, dashboard, Prometheus' settings, and the metrics that they name.
import { readFileSync } from 'node:fs';

export const alertsPath = 'deploy/prometheus/alerts.yml';
export const settingsPath = 'deploy/prometheus/prometheus.yml';
export const dashboardPath = 'deploy/grafana/dbhttpd.json';
export const runbookPath = 'docs/operate/runbook.md';

/** The parts of an alert that tests read. */
export type Alert = {
  readonly name: string;
  readonly expression: string;
  readonly severity: string;
  readonly runbook: string;
};

/** The alerts, in their order. The file is written in one way: promtool says whether it is YAML. */
export function readAlerts(): readonly Alert[] {
  const [, ...parts] = readFileSync(alertsPath, 'utf8').split(/^ {6}- alert: /m);
  const find = (text: string, pattern: RegExp) => pattern.exec(text)?.[1]?.trim() ?? '';
  return parts.map((text) => ({
    name: find(text, /^(\w+)/),
    expression: find(text, /^ {8}expr: (?:>-\n)?([\s\S]+?)\n {8}\w+:/m),
    severity: find(text, /severity: (\w+)/),
    runbook: find(text, /runbook: (\S+)/),
  }));
}

/** The parts of a panel that tests read. */
export type Panel = {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: Readonly<Record<'x' | 'y' | 'w' | 'h', number>>;
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly { readonly expr: string; readonly datasource: { uid: string } }[];
};

/** The dashboard. */
export function readDashboard() {
  const text = readFileSync(dashboardPath, 'utf8');
  return JSON.parse(text) as {
    readonly panels: readonly Panel[];
    readonly templating: { readonly list: readonly { name: string; definition?: string }[] };
    readonly annotations: { readonly list: readonly { readonly expr: string }[] };
  };
}

/** All expressions of the dashboard, as Grafana sends them for all gateways and sections over five minutes. */
export function readDashboardExpressions(rateInterval: string): readonly string[] {
  const { panels, annotations } = readDashboard();
  const all = [
    ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
    ...annotations.list.map(({ expr }) => expr),
  ];
  return all.map((expression) =>
    expression
      .replaceAll('$__rate_interval', rateInterval)
      .replaceAll('$__range', '5m')
      .replaceAll(/\$(?:instance|section)/g, '.*'),
  );
}

/** A metric that is named in a text, with the labels that it is chosen by, and the values of those. */
export type Naming = {
  readonly name: string;
  readonly labels: Readonly<Record<string, readonly string[]>>;
};

/** Every naming of one of the gateway's own metrics in a text. */
export function findNamings(text: string): readonly Naming[] {
  const found = text.matchAll(
    /\b((?:dbhttpd|nodejs)_\w+|process_(?:cpu|resident|open|max|start)_\w+)(?:\{([^{}]*)\})?/g,
  );
  return [...found].map(([, name = '', chosen = '']) => ({
    name,
    labels: Object.fromEntries(
      [...chosen.matchAll(/(\w+)(=~|!~|!=|=)"([^"]*)"/g)].map(
        ([, label = '', how = '', value = '']) => [
          label,
          how.includes('~') ? value.split('|') : [value],
        ],
      ),
    ),
  }));
}
