// Which features can be removed, and the registry that names them.

/** The features that only the registry and the lists of services import: each can be removed with its entries. */
export const OPTIONAL_FEATURES: readonly string[] = [
  'conditions',
  'doctor',
  'evidence',
  'identity',
  'policy-lint',
  'telemetry',
];

/** The registry of all features. It loads what it lists when that is needed. */
export const REGISTRY = 'src/features/declare-features.ts';

/** The routes, tools and services of features, which are imported at once. */
export const SERVICE_LISTS = [
  'src/features/feature-routes.ts',
  'src/features/feature-services.ts',
  'src/features/feature-tools.ts',
];
