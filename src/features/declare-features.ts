// The features whose inputs and entries a ledger may contain. Each is loaded when an entry of it is first read or
// decided. To remove a feature, remove its folder and its line here.

import { declareFeature, type DeclaredFeature } from '../core/contract/run/feature-vocabulary.js';
import { installTreeFeature, type TreeFeature } from '../kernel/tree-feature.js';

const install = async (loading: Promise<TreeFeature>): Promise<void> => {
  installTreeFeature(await loading);
};

const FEATURES: readonly DeclaredFeature[] = [
  {
    feature: 'sessions',
    stateMember: 'sessions',
    load: () => install(import('./sessions/tree/session-tree.js').then(({ SESSIONS }) => SESSIONS)),
  },
];

/** Declares all features of this package. Calling it again changes nothing. */
export function declareFeatures(): void {
  for (const feature of FEATURES) declareFeature(feature);
}
