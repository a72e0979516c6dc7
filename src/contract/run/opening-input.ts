import type { InputKind, OpenInput, OpenSessionInput } from './input.js';

/** The inputs that open the tree of a run or of a session. */
export type OpeningInput = OpenInput | OpenSessionInput;

/** Whether an input opens a tree. It is then the first entry of that tree and names its case and policies. */
export const isOpeningInput = <T extends { readonly kind: InputKind }>(
  input: T,
): input is Extract<T, { readonly kind: OpeningInput['kind'] }> =>
  input.kind === 'open' || input.kind === 'open_session';
