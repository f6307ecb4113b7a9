// Failures of the network as a code and a plain sentence with host and port, never a path or a query.

import { formatDuration } from '../../duration.ts';
import type { StepReply } from '../driver.ts';
import type { HttpTimeouts } from './compiled.ts';
import { ConnectRefused } from './connectors.ts';
import { ExchangeLimit } from './exchange.ts';

export interface Fault {
  code: Extract<StepReply, { kind: 'failed' }>['code'];
  reason: string;
}

export interface FaultContext {
  /** `host:port` of the upstream. */
  where: string;
  timeouts: HttpTimeouts;
  maxBytes: number;
  /** Bytes of the request may have gone out. */
  sent: boolean;
}

export function describeFault(error: Error, context: FaultContext): Fault {
  const { where, timeouts, maxBytes, sent } = context;
  if (error instanceof ConnectRefused) return { code: 'connect', reason: error.message };
  const code = codeOf(error);
  switch (code) {
    case 'aborted':
    case 'UND_ERR_DESTROYED':
    case 'UND_ERR_CLOSED':
    case 'UND_ERR_ABORTED':
      return { code: 'aborted', reason: `the exchange with ${where} was given up` };
    case 'too_large':
      return { code: 'too_large', reason: `${where} sent more than ${maxBytes} bytes` };
    case 'UND_ERR_HEADERS_OVERFLOW':
    case 'HPE_HEADER_OVERFLOW':
      return { code: 'too_large', reason: `${where} sent more headers than can be read` };
    case 'total_time':
      return { code: 'timeout', reason: `${where} took too long to send its whole reply` };
    case 'headers_time':
      return {
        code: 'timeout',
        reason: `${where} did not answer within ${formatDuration(timeouts.headers)}`,
      };
    case 'body_time':
      return {
        code: 'timeout',
        reason: `${where} fell silent for ${formatDuration(timeouts.body)} in the middle of its reply`,
      };
    case 'UND_ERR_INVALID_ARG':
    case 'UND_ERR_NOT_SUPPORTED':
      return { code: 'invalid_request', reason: `the request to ${where} is not legal HTTP` };
  }
  if (refusesCertificate(error)) {
    return {
      code: 'credential',
      reason: `${where} refuses the client certificate (${code}); see upstream.tls`,
    };
  }
  if (!sent) return { code: 'connect', reason: connectSentence(code, where, timeouts) };
  if (code.startsWith('HPE_'))
    return { code: 'reset', reason: `${where} sent something that is not HTTP (${code})` };
  return { code: 'reset', reason: `${where} closed the connection before its reply was complete` };
}

/**
 * The host ended the handshake over the client's certificate, or for want of one. With TLS 1.3 that arrives after the
 * request was written, which nobody has read then.
 */
export function refusesCertificate(error: Error): boolean {
  return /^ERR_SSL_\w+_ALERT_(CERTIFICATE_\w+|BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED)$/.test(
    codeOf(error),
  );
}

/** The other side closed an open connection. */
export function isReset(error: Error): boolean {
  return /^(UND_ERR_SOCKET|ECONNRESET|EPIPE)$/.test(codeOf(error));
}

function connectSentence(code: string, where: string, timeouts: HttpTimeouts): string {
  switch (code) {
    case 'ECONNREFUSED':
      return `${where} refuses connections`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'EAI_FAIL':
      return `the host name of ${where} can't be resolved (${code})`;
    case 'UND_ERR_CONNECT_TIMEOUT':
    case 'ETIMEDOUT':
      return `no connection to ${where} within ${formatDuration(timeouts.connect)}`;
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return `the certificate of ${where} is for another name`;
    case 'CERT_HAS_EXPIRED':
      return `the certificate of ${where} has expired`;
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
      return `the certificate of ${where} is not trusted (${code}); name its authority in upstream.ca`;
    default:
      return `can't connect to ${where}${code === '' ? '' : ` (${code})`}`;
  }
}

function codeOf(error: Error): string {
  if (error instanceof ExchangeLimit) return error.code;
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === 'string' ? code : '';
}
