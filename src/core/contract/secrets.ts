/** Computes hashes under a key of this home that never leaves the process. */
export interface Secrets {
  /**
   * HMAC-SHA256 of a purpose and its parts, as one canonical list: no text can move from one part to the next, and a
   * MAC for one purpose is invalid for another (C69, D10).
   */
  computeMac(purpose: 'step_proof' | 'gate_evidence' | 'tree_snapshot', parts: readonly (string | number)[]): Buffer;
}
