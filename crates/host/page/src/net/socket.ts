// The WebSocket to the host: operations with replies, reconnecting, and a watch for connections that died in silence.

import { HostError, type ErrorBody } from '../contract'

export type SocketState = 'connecting' | 'connected' | 'signed_out'

export interface ServerMessage { op: string, [field: string]: unknown }

interface Pending { resolve: (result: never) => void, reject: (error: HostError) => void }

interface Handlers {
  state: (state: SocketState) => void
  message: (message: ServerMessage) => void
}

const BACKOFF_MS = [250, 500, 1000, 2000, 4000, 8000]
const OFFLINE_RETRY_MS = 15_000
const REPLY_TIMEOUT_MS = 30_000
const CLOSED_SIGNED_OUT = 4401

export class Socket {
  private socket: WebSocket | undefined
  private pending = new Map<string, Pending>()
  private nextId = 1
  private attempts = 0
  private lastHeard = 0
  private beatMs = 15_000
  private retry: number | undefined
  private closed = false

  constructor (private readonly handlers: Handlers) {
    setInterval(() => this.checkBeat(), 2000)
    window.addEventListener('online', () => this.reconnectNow())
    document.addEventListener('visibilitychange', () => {
      this.sendVisible()
      if (document.visibilityState === 'visible') this.checkBeat()
    })
  }

  connect () {
    this.closed = false
    window.clearTimeout(this.retry)
    const url = new URL('/v1/ws', location.href)
    url.protocol = url.protocol.replace('http', 'ws')
    const socket = new WebSocket(url, 'whimbrel.1')
    this.socket = socket
    this.lastHeard = Date.now()
    socket.onmessage = event => { if (socket === this.socket) this.hear(String(event.data)) }
    socket.onclose = event => { if (socket === this.socket) this.lost(event.code) }
  }

  /** Sends an operation; the promise ends with its reply, or as soon as the connection is lost. */
  call<T> (op: string, fields: Record<string, unknown> = {}): Promise<T> {
    const socket = this.socket
    if (socket?.readyState !== WebSocket.OPEN) return Promise.reject(offline())
    const id = String(this.nextId++)
    const reply = new Promise<T>((resolve, reject) => {
      const timer = window.setTimeout(() => {
        this.pending.delete(id)
        reject(new HostError({ code: 'offline', message: 'The server does not answer.' }))
      }, REPLY_TIMEOUT_MS)
      this.pending.set(id, {
        resolve: (result: T) => { window.clearTimeout(timer); resolve(result) },
        reject: error => { window.clearTimeout(timer); reject(error) }
      })
    })
    socket.send(JSON.stringify({ op, id, ...fields }))
    return reply
  }

  close () {
    this.closed = true
    this.socket?.close()
    this.handlers.state('signed_out')
  }

  private sendVisible () {
    if (this.socket?.readyState !== WebSocket.OPEN) return
    this.socket.send(JSON.stringify({ op: 'visible', on: document.visibilityState === 'visible' }))
  }

  private hear (data: string) {
    this.lastHeard = Date.now()
    const message = JSON.parse(data) as ServerMessage
    if (message.op === 'hello') {
      this.attempts = 0
      if (typeof message.beat_s === 'number') this.beatMs = message.beat_s * 1000
      this.handlers.state('connected')
      this.sendVisible()
    }
    if (message.op !== 'reply') return this.handlers.message(message)
    const pending = this.pending.get(String(message.id))
    this.pending.delete(String(message.id))
    if (message.ok) pending?.resolve(message.result as never)
    else pending?.reject(new HostError(message.error as ErrorBody))
  }

  private lost (code: number) {
    this.socket = undefined
    for (const pending of this.pending.values()) pending.reject(offline())
    this.pending.clear()
    if (this.closed || code === CLOSED_SIGNED_OUT) return this.handlers.state('signed_out')
    this.handlers.state('connecting')
    // A machine without a network may still reach its own loopback address, so offline means fewer attempts, not none.
    const wait = navigator.onLine ? BACKOFF_MS[Math.min(this.attempts++, BACKOFF_MS.length - 1)] ?? 8000 : OFFLINE_RETRY_MS
    window.clearTimeout(this.retry)
    this.retry = window.setTimeout(() => this.connect(), wait * (0.7 + Math.random() * 0.6))
  }

  /** A connection without a beat is dead, whatever the browser says. */
  private checkBeat () {
    if (this.socket && Date.now() - this.lastHeard > this.beatMs * 2.7) this.drop()
  }

  private drop () {
    const socket = this.socket
    if (!socket) return
    socket.onclose = null
    socket.close()
    this.lost(1006)
  }

  private reconnectNow () {
    if (this.closed) return
    this.attempts = 0
    this.drop()
    this.connect()
  }
}

function offline (): HostError {
  return new HostError({ code: 'offline', message: 'Not connected. It is sent as soon as the connection is back.' })
}
