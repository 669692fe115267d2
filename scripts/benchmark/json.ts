// The record of a run: conditions, verdicts, and every sample, one line a peer and cell so that two runs compare well.
import { type GaugeResult, middle } from './gauges.ts';
import type { Verdict } from './judge.ts';
import { type CellResult, type RunResult, summarise } from './rounds.ts';

/** A replacer for JSON.stringify. Six digits are more than any of these measurements has. */
export function roundNumbers(_key: string, value: unknown): unknown {
  return typeof value === 'number' && Number.isFinite(value) ? Number(value.toPrecision(6)) : value;
}

function composeLines({ cell, samples }: CellResult): string[] {
  const { id, workload, load } = cell;
  return [...samples].map(([peer, list]) => {
    const { statement } = workload;
    const line = { cell: id, peer, ...load, statement, median: summarise(list), samples: list };
    return JSON.stringify(line, roundNumbers);
  });
}

function composeGauge(result: GaugeResult): string {
  const { id, title, unit } = result.gauge;
  const line = { gauge: id, title, unit, median: middle(result), readings: result.readings };
  return JSON.stringify(line, roundNumbers);
}

/** Composes the document; `conditions` is whatever describes machine, versions and settings. */
export function composeJson(
  conditions: Readonly<Record<string, unknown>>,
  results: RunResult,
  verdicts: readonly Verdict[],
): string {
  const head = JSON.stringify({ at: new Date().toISOString(), ...conditions }, roundNumbers, 1);
  const judged = verdicts.map(({ target, measured, word, beside, ceiling, disturbed }) => {
    const { beside: other, ceiling: _constant, ...rest } = target;
    const second = other === null ? null : { ...other, measured: beside };
    return JSON.stringify(
      { ...rest, measured, verdict: word, ceiling, disturbed, beside: second },
      roundNumbers,
    );
  });
  const lines = [...results.cells.flatMap(composeLines), ...results.gauges.map(composeGauge)];
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
