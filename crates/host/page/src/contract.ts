// The types of the host's contract (HTTP and WebSocket) that the page uses. Frames are those of the wire; the page reads
// only what it shows, so frame types name these fields and leave the rest out.

export type SessionState = 'resting' | 'running' | 'waiting' | 'interrupted' | 'failed' | 'elsewhere'
export type Mode = 'default' | 'acceptEdits' | 'plan' | 'bypassPermissions' | 'dontAsk' | 'auto' | 'delegate'
export type Priority = 'later' | 'next' | 'now'
export type Scope = 'once' | 'session' | 'local' | 'project' | 'user'
export type RequestState = 'open' | 'allowed' | 'denied' | 'withdrawn' | 'lost' | 'replaced'
export type RequestKind = 'permission' | 'question' | 'plan' | 'elicitation' | 'approval'

export interface Person { id: string, name: string, role?: string }

export interface Me { person: Person | null, roots?: string[], version?: string, api?: number, features?: string[] }

export interface Session {
  id: string
  engine_session?: string
  folder: string
  title: string | null
  state: SessionState
  mode: Mode | null
  model: string | null
  origin: string
  parent: string | null
  head: number
  queued: number
  open_requests: number
  cost_usd: number
  trusted: boolean
  made_at: number
  touched_at: number
  archived: boolean
  deleted?: boolean
  hits?: { seq?: number, text: string }[]
}

export interface HostRequest {
  id: string
  session: string
  session_title: string | null
  folder: string
  kind: RequestKind
  state: RequestState
  opened_at: number
  closed_at: number | null
  by: Person | null
  request: CanUseTool & ElicitationRequest
  scopes?: { scope: Scope, rule: string }[]
  answer?: { decision: 'allow' | 'deny', scope?: Scope, rule?: string, message?: string, input_changed?: boolean } | null
  by_request?: string
}

export interface CanUseTool {
  subtype: string
  tool_name: string
  tool_use_id: string
  input: Record<string, unknown>
  decision_reason?: string | null
  blocked_path?: string | null
  agent_id?: string | null
  description?: string | null
  default_to_no?: boolean | null
}

export interface ElicitationRequest {
  mcp_server_name?: string
  message?: string
  mode?: string | null
  url?: string | null
  requested_schema?: { properties?: Record<string, FieldSchema>, required?: string[] }
}

export interface FieldSchema {
  type?: string
  title?: string
  description?: string
  enum?: string[]
  enumNames?: string[]
  default?: unknown
  format?: string
}

export interface Answer {
  decision: 'allow' | 'deny'
  scope?: Scope
  input?: unknown
  message?: string
  interrupt?: boolean
  answers?: Record<string, string | string[]>
  mode?: Mode
}

/** A folder, whether it is trusted, and what its own settings have that counts only then. */
export interface FolderTrust {
  folder: string
  trusted: boolean
  adds: { files: string[], hooks: string[], servers: string[], allow: string[], other: string[] }
}

export interface Upload { id: string, name: string, type: string, size: number }

export interface Message {
  key: string
  text?: string
  uploads?: string[]
  priority?: Priority
}

export interface HostEvent { session: string, seq: number, at: number, frame: Frame, cut?: boolean }

export interface Block {
  type: string
  text?: string
  thinking?: string
  id?: string
  name?: string
  input?: unknown
  tool_use_id?: string
  content?: string | Block[]
  is_error?: boolean
  source?: { type?: string, media_type?: string, data?: string }
  title?: string | null
}

export interface ApiMessage { id?: string, role?: string, model?: string, content: string | Block[], usage?: TokenUsage }

export interface TokenUsage {
  input_tokens?: number
  output_tokens?: number
  cache_read_input_tokens?: number
  cache_creation_input_tokens?: number
}

/** A frame of the wire or of the host. Fields that no frame of its type has are absent. */
export interface Frame {
  type: string
  subtype?: string
  uuid?: string
  [field: string]: unknown
}

export interface ErrorBody { code: string, message: string, detail?: Record<string, unknown> }

/** An error that the host answered, or a connection that failed (`code: "offline"`). */
export class HostError extends Error {
  readonly code: string
  readonly detail: Record<string, unknown>
  readonly status: number

  constructor (error: ErrorBody, status = 0) {
    super(error.message)
    this.code = error.code
    this.detail = error.detail ?? {}
    this.status = status
  }
}
