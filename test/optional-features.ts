// The features, the registry that names them, and the entries of the package that export from them.

import ts from 'typescript';
import { filesIn } from './sources.js';

/** Every feature: only these lists and exports of the package name it, so that it can be removed with these lines. */
export const OPTIONAL_FEATURES: readonly string[] = [
  ...new Set(
    filesIn('src/features', /\.tsx?$/)
      .map((path) => path.split('/'))
      .flatMap(([, , feature = '', file]) => (file === undefined ? [] : [feature])),
  ),
].sort();

/** The registry of all features. It loads what it lists when that is needed. */
export const REGISTRY = 'src/features/declare-features.ts';

/**
 * What features add to services, to the page and to what is published, which is imported at once, and the commands that
 * start alone.
 */
export const SERVICE_LISTS = [
  'src/features/early-commands.ts',
  'src/features/feature-documents.ts',
  'src/features/feature-entry-types.ts',
  'src/features/feature-labels.ts',
  'src/features/feature-panels.ts',
  'src/features/feature-routes.ts',
  'src/features/feature-services.ts',
  'src/features/feature-tools.ts',
];

/** The entries of the package whose exports come from several folders, and the types that features add. */
export const PUBLIC_ENTRIES: readonly string[] = [
  'src/host/feature-types.ts',
  'src/index.ts',
  ...filesIn('src/interfaces', /^index\.ts$/),
  'src/published/machines.ts',
];

/** The statements `export … from` of a public entry that name the folder of a feature. They are part of the feature. */
export const exportsOfFeature = (entry: ts.SourceFile, feature: string): readonly ts.ExportDeclaration[] =>
  entry.statements
    .filter(ts.isExportDeclaration)
    .filter(({ moduleSpecifier }) => moduleSpecifier?.getText(entry).includes(`/features/${feature}/`) === true);
