// What the suites know of features: which can be removed, and where their parts of other layers are.

/** The features that nothing but the registry imports: each can be removed with its entry there. */
export const OPTIONAL_FEATURES: readonly string[] = ['conditions', 'doctor', 'evidence', 'policy-lint'];

/** The registry of all features. It loads what it lists when that is needed. */
export const REGISTRY = 'src/features/declare-features.ts';

/** What a feature adds to interfaces. It belongs to their layer, and only the registry and the feature import it. */
export const ADDED_TO_INTERFACES = /^src\/features\/[^/]+\/(?:commands|routes|tools|views)\//;
