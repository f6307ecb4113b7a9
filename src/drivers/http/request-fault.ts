// A request that can't be made from what the adapter and the task give; never sent.

/** The message is for people and names no secret. */
export class RequestFault extends Error {
  override readonly name = 'RequestFault';
  /** `credential`: what is wrong is the adapter's credential, not the step. */
  readonly code: 'invalid_request' | 'credential';

  constructor(message: string, code: 'invalid_request' | 'credential' = 'invalid_request') {
    super(message);
    this.code = code;
  }
}
