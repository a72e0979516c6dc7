import type { InputKind, OpenInput, OpenSessionInput } from './input.js';

/** The inputs that open a tree: a run's or a session's. */
export type OpeningInput = OpenInput | OpenSessionInput;

/** Whether an input opens a tree. Then it is the first entry of that tree, and names its case and its policies. */
export const isOpeningInput = <T extends { readonly kind: InputKind }>(
  input: T,
): input is Extract<T, { readonly kind: OpeningInput['kind'] }> =>
  input.kind === 'open' || input.kind === 'open_session';
