/** What only this home can make: hashes under a key that never leaves the process. */
export interface Secrets {
  /**
   * HMAC-SHA256 of a purpose and its parts, as one canonical list: nothing can be moved from one part to the next, and
   * what is made for one purpose is worth nothing for another (C69, D10).
   */
  computeMac(purpose: 'step_proof' | 'gate_evidence', parts: readonly (string | number)[]): Buffer;
}
