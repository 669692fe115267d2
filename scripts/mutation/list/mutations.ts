// All mutations of scripts/mutate.
import type { Mutation } from '../mutation.ts';
import { boundMutations } from './bounds.ts';
import { fateMutations } from './fates.ts';
import { guardMutations } from './guards.ts';
import { heldMutations } from './held.ts';
import { httpMutations } from './http.ts';
import { identityMutations } from './identity.ts';
import { keyMutations } from './keys.ts';
import { namedMutations } from './named.ts';
import { outcomeMutations } from './outcomes.ts';
import { processMutations } from './processes.ts';
import { repeatMutations } from './repeats.ts';
import { safeguardMutations } from './safeguards.ts';
import { serverMutations } from './servers.ts';
import { sessionMutations } from './sessions.ts';
import { settingMutations } from './settings.ts';
import { textMutations } from './text.ts';
import { toolMutations } from './tools.ts';
import { turnMutations } from './turns.ts';

export const mutations: readonly Mutation[] = [
  ...identityMutations,
  ...boundMutations,
  ...outcomeMutations,
  ...safeguardMutations,
  ...repeatMutations,
  ...fateMutations,
  ...keyMutations,
  ...heldMutations,
  ...sessionMutations,
  ...textMutations,
  ...httpMutations,
  ...guardMutations,
  ...processMutations,
  ...serverMutations,
  ...settingMutations,
  ...turnMutations,
  ...namedMutations,
  ...toolMutations,
];
