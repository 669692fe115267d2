// All mutations of scripts/mutate.
import type { Mutation } from '../mutation.ts';
import { boundMutations } from './bounds.ts';
import { identityMutations } from './identity.ts';
import { outcomeMutations } from './outcomes.ts';
import { safeguardMutations } from './safeguards.ts';

export const mutations: readonly Mutation[] = [
  ...identityMutations,
  ...boundMutations,
  ...outcomeMutations,
  ...safeguardMutations,
];
