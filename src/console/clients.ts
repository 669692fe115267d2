// Clients by their share of the time for which connections are held: which one is loud, which ones wait, and which ones are refused.
import type { ClientStats, Stats } from '../shared/observe/stats.ts';
import { drawShare, drawTrend } from './drawings.ts';
import { openPart, setText } from './elements.ts';
import { formatBytes, formatCount, formatShort } from './format.ts';
import type { StatsPart } from './stats-tables.ts';
import { asText, type Column, createTable } from './table.ts';

/** The client of instances without a clients file. */
const defaultName = 'default';

/** Whether an instance tells its clients apart. */
export function hasClients({ clients: { clients } }: Stats): boolean {
  return clients.some(({ client }) => client !== defaultName);
}

/** Opens the part. It is hidden, with the link to it, as long as all requests belong to one client. */
export function openClients(): StatsPart {
  const part = openPart('clients');
  const link = document.querySelector<HTMLElement>('nav a[href="#clients"]');
  let most = 0;
  const columns = columnsOf(() => most);
  const table = createTable('Clients', columns, ({ client }) => client);
  part.body.append(table.frame);
  const hide = (isHidden: boolean) => {
    part.section.hidden = isHidden;
    if (link !== null) link.hidden = isHidden;
  };
  hide(true);
  return {
    part,
    show: (stats) => {
      const { clients, omitted } = stats.clients;
      hide(!hasClients(stats));
      // One scale for all: a line at the bottom belongs to a quiet client.
      most = Math.max(0, ...clients.flatMap(({ history }) => history?.connections ?? []));
      table.update(clients);
      const more = omitted === 0 ? '' : `, and ${formatCount(omitted)} more`;
      part.shown(`${formatCount(clients.length)}${more}, by the time of the last minute`);
    },
  };
}

function columnsOf(most: () => number): readonly Column<ClientStats>[] {
  const marked = (
    name: string,
    title: string,
    value: (client: ClientStats) => number,
    explain: (client: ClientStats) => string = () => '',
  ): Column<ClientStats> => ({
    name,
    title,
    kind: 'number',
    show: (client, cell) => {
      setText(cell, formatCount(value(client)));
      cell.classList.toggle('marked', value(client) > 0);
      cell.title = explain(client);
    },
  });
  return [
    { name: 'Client', show: asText(({ client }) => client) },
    {
      name: 'Share of time',
      kind: 'number',
      title: 'Its share of the time for which connections were held in the last minute',
      show: ({ share }, cell) => drawShare(share, cell),
    },
    {
      name: 'Trend',
      title: 'The connections that it held in the last ten minutes, on one scale for all clients',
      show: ({ history }, cell) => drawTrend(history?.connections ?? [], cell, most()),
    },
    {
      name: 'Running',
      kind: 'number',
      title: 'Requests that run now, and transactions that it holds',
      show: asText(({ in_flight }) => formatCount(in_flight)),
    },
    marked('Waiting', 'Requests that wait now', ({ waiting }) => waiting),
    marked(
      'Refused',
      'Requests that were refused in the last ten minutes',
      ({ refused_recently }) => refused_recently,
      ({ refused_by }) => describeRefusals(refused_by),
    ),
    {
      name: 'Requests',
      kind: 'number',
      title: 'Since the start',
      show: asText(({ requests }) => formatShort(requests)),
    },
    {
      name: 'Sent',
      kind: 'number',
      title: 'Bytes of replies since the start',
      show: asText(({ reply_bytes }) => formatBytes(reply_bytes)),
    },
  ];
}

function describeRefusals(refusedBy: ClientStats['refused_by']): string {
  const all = Object.entries(refusedBy).map(([code, count]) => `${code}: ${formatCount(count)}`);
  return all.length === 0 ? '' : `Since the start: ${all.join(', ')}`;
}
