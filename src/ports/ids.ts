/** Random identifiers: only for roots and correlation ids; everything below a root is derived (D11). */
export interface Ids {
  /** @returns an id of 21 characters from [A-Za-z0-9] behind the prefix, e.g. `run_V1StGXR8Z5jdHi6BmyTab` */
  draw(prefix: 'run_' | 'ses_' | 'cor_' | 'inp_' | 'bundle_' | 'tok_'): string;
}
