/** Random identifiers, only for roots and correlation ids; all ids below a root are derived (D11). */
export interface Ids {
  /** @returns an id of 21 characters from [A-Za-z0-9] after the prefix, e.g. `run_V1StGXR8Z5jdHi6BmyTab` */
  draw(prefix: 'run_' | 'ses_' | 'cor_' | 'inp_' | 'bundle_' | 'tok_'): string;
}
