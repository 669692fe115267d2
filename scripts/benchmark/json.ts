// The record of a run: conditions, verdicts, and every sample, one line a peer and cell so that two runs compare well.
// Must not know how figures are taken or shown.
import { type CellResult, summarise } from './rounds.ts';
import type { Verdict } from './targets.ts';

// Six digits are more than any of these measurements has.
function round(_key: string, value: unknown): unknown {
  return typeof value === 'number' && Number.isFinite(value) ? Number(value.toPrecision(6)) : value;
}

function composeLines({ cell, samples }: CellResult): string[] {
  const { id, workload, load } = cell;
  return [...samples].map(([peer, list]) => {
    const { statement } = workload;
    const line = { cell: id, peer, ...load, statement, median: summarise(list), samples: list };
    return JSON.stringify(line, round);
  });
}

/** Composes the document; `conditions` is whatever describes machine, versions and settings. */
export function composeJson(
  conditions: Readonly<Record<string, unknown>>,
  results: readonly CellResult[],
  verdicts: readonly Verdict[],
): string {
  const head = JSON.stringify({ at: new Date().toISOString(), ...conditions }, round, 1);
  const judged = verdicts.map(({ target, measured, pass }) =>
    JSON.stringify({ ...target, measured, pass }, round),
  );
  const lines = results.flatMap(composeLines);
  return `${head.slice(0, -2)},
 "targets": [
  ${judged.join(',\n  ')}
 ],
 "cells": [
  ${lines.join(',\n  ')}
 ]
}
`;
}
