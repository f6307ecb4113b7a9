// The HTTP face: /mcp behind Host and Origin checks, and the pages operators need.

import { hostHeaderValidation, originValidation } from '@modelcontextprotocol/express';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { type McpHttpHandler, ProtocolErrorCode } from '@modelcontextprotocol/server';
import express, {
  type ErrorRequestHandler,
  type Express,
  type NextFunction,
  type Request,
  type Response,
} from 'express';
import { sentenceOf } from '../errors.ts';
import type { Log } from '../observability/log.ts';
import type { Metrics } from '../observability/metrics.ts';
import { checkBody } from './body-check.ts';
import { rpcError } from './request.ts';

export interface HttpDeps {
  fetch: McpHttpHandler['fetch'];
  /** Host names a request may be addressed to, without port. */
  hosts: string[];
  /** Host names of web pages that may call, without scheme and port. */
  origins: string[];
  /** Largest MCP request in bytes. */
  requestBytes: number;
  /** Resolves when the store takes writes. */
  ready(): Promise<void>;
  metrics: Metrics;
  log: Log;
  /** Aborts when the server stops: from then on MCP requests are refused. */
  stopping: AbortSignal;
}

export function createHttpApp(deps: HttpDeps): Express {
  const app = express();
  app.disable('x-powered-by');
  // No ETag: replies are never the same for long, and hashing every one costs.
  app.disable('etag');
  // Health pages skip the Host check: load balancers ask by address.
  app.get('/healthz', (_request, response) => void response.type('text').send('ok\n'));
  app.get('/readyz', async (_request, response) => {
    try {
      await deps.ready();
      response.type('text').send('ready\n');
    } catch (error) {
      response
        .status(503)
        .type('text')
        .send(`not ready: ${sentenceOf(error)}\n`);
    }
  });
  app.use((_request, response, next) => {
    if (!deps.stopping.aborted) {
      next();
      return;
    }
    // Only a connection that was busy when the server began to stop gets here.
    response.status(503).set({ connection: 'close', 'retry-after': '1' });
    response.json(rpcError(ProtocolErrorCode.InternalError, 'The server is stopping'));
  });
  app.use(hostHeaderValidation(deps.hosts), originValidation(deps.origins));
  app.get('/metrics', async (_request, response) => {
    response.type(deps.metrics.registry.contentType).send(await deps.metrics.registry.metrics());
  });
  const node = toNodeHandler(
    { fetch: deps.fetch },
    { onerror: (error) => deps.log.error({ err: error }, 'an MCP exchange failed') },
  );
  app.all(
    '/mcp',
    express.json({ limit: deps.requestBytes, strict: false }),
    checkBody,
    (request, response) => {
      void node(request, response, request.body);
    },
  );
  app.use(
    (_request, response) => void response.status(404).type('text').send('not found: MCP is served at /mcp\n'),
  );
  app.use(onBodyError, onFailure(deps.log));
  return app;
}

/** Ends what nothing above could answer. Express's own handler would show the client a stack trace. */
function onFailure(log: Log): ErrorRequestHandler {
  return (error: unknown, request, response, _next) => {
    log.error({ err: error, path: request.path }, 'an HTTP request failed');
    if (response.headersSent) response.destroy();
    else response.status(500).type('text').send('internal error\n');
  };
}

/** A body that can't be read is answered as JSON-RPC, as the client expects JSON. */
function onBodyError(error: unknown, _request: Request, response: Response, next: NextFunction): void {
  const { type, status, message } = error as { type?: string; status?: number; message?: string };
  if (response.headersSent || status === undefined || status >= 500) {
    next(error);
    return;
  }
  const text =
    type === 'entity.too.large' ? 'Request body too large' : `Parse error: ${message ?? 'unreadable body'}`;
  response.status(status).json(rpcError(ProtocolErrorCode.ParseError, text));
}
