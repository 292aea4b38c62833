// One open session: its events, the state that they make, and what the person is about to send.

import { emptyConversation, type Conversation } from './conversation/state'
import { reduce, type Input } from './conversation/reduce'
import type { Frame, HostEvent, Message, Priority, Upload } from './contract'
import { get } from './net/http'
import { newKey, store, stored } from './storage'

/** Events that are read first. */
export const FIRST_EVENTS = 200

/** Items that are drawn at once. */
export const WINDOW = 120

export interface Attachment { key: string, name: string, size: number, preview: string | null, upload: Upload | null, error: string | null }

export interface Outgoing { message: Message, text: string, at: number, error: string | null }

export interface ModelChoice { value: string, displayName: string, description?: string, resolvedModel?: string | null }

export class SessionStore {
  readonly id: string
  conversation: Conversation = emptyConversation()
  error: string | null = null
  /** The items that are drawn: `end` is null while the newest are. */
  start: number | null = null
  end: number | null = null
  loadingOlder = false
  subscribed = false
  attachments: Attachment[] = []
  outgoing: Outgoing[] = []
  priority: Priority = 'later'
  models: ModelChoice[] = []
  context: { totalTokens: number, maxTokens: number, categories: { name: string, tokens: number }[] } | null = null
  stopAsked = false
  showDetails = false
  suggestions: { kind: 'file' | 'command', items: string[], selected: number, from: number, to: number } | null = null
  /** Text that the composer takes over with the next drawing. */
  draftToSet: string | null
  private events: HostEvent[] = []
  private inputs: Input[] = []

  constructor (id: string) {
    this.id = id
    this.draftToSet = stored(`draft:${id}`)
  }

  hearEvent (event: HostEvent) {
    this.inputs.push({ event })
  }

  hearLive (frame: Frame) {
    this.inputs.push({ live: frame })
  }

  resync () {
    this.inputs.push({ resync: true })
  }

  /** Takes over what has come since the last drawing. */
  settle () {
    if (!this.inputs.length) return
    const inputs = this.inputs
    this.inputs = []
    let last = this.conversation.last
    for (const input of inputs) {
      if (!('event' in input) || (last !== 0 && input.event.seq !== last + 1)) continue
      this.events.push(input.event)
      last = input.event.seq
    }
    this.conversation = reduce(this.conversation, inputs)
    if (this.conversation.state !== 'running' && this.conversation.state !== 'waiting') this.stopAsked = false
  }

  acknowledge (key: string) {
    this.outgoing = this.outgoing.filter(outgoing => outgoing.message.key !== key)
  }

  get hasOlder (): boolean {
    return this.conversation.first > 1
  }

  /** Reads events before the first one that is known; `all` reads the whole beginning. */
  async loadOlder (all = false) {
    if (this.loadingOlder || !this.hasOlder) return
    this.loadingOlder = true
    try {
      do {
        const before = this.events[0]?.seq ?? this.conversation.first
        const page = await get<{ events: HostEvent[] }>(`/v1/sessions/${this.id}/events?before=${before}&limit=200`)
        if (!page.events.length) break
        this.prepend(page.events)
      } while (all && this.hasOlderEvents)
    } finally {
      this.rebuild()
      this.loadingOlder = false
    }
  }

  private get hasOlderEvents (): boolean {
    return (this.events[0]?.seq ?? 1) > 1
  }

  private prepend (events: HostEvent[]) {
    const first = this.events[0]?.seq ?? Infinity
    this.events = [...events.filter(event => event.seq < first), ...this.events]
  }

  private rebuild () {
    this.settle()
    const { live, items, tools } = this.conversation
    const rebuilt = reduce(emptyConversation(), this.events.map(event => ({ event })))
    rebuilt.live = live
    for (const [id, tool] of tools) {
      const same = rebuilt.tools.get(id)
      if (same && tool.output && same.state === 'running') rebuilt.tools.set(id, { ...same, output: tool.output, omittedBytes: tool.omittedBytes })
    }
    if (this.start !== null) this.start += rebuilt.items.length - items.length
    this.conversation = rebuilt
  }

  /** Replaces an event that came with cut strings by the whole one. */
  async loadWhole (seq: number) {
    const whole = await get<HostEvent>(`/v1/sessions/${this.id}/events/${seq}`)
    this.events = this.events.map(event => event.seq === seq ? { ...event, frame: whole.frame, cut: false } : event)
    this.rebuild()
  }

  saveDraft (text: string) {
    store(`draft:${this.id}`, text)
  }

  compose (text: string, priority: Priority): Message {
    const uploads = this.attachments.flatMap(attachment => attachment.upload ? [attachment.upload.id] : [])
    const message: Message = { key: newKey(), text, priority }
    if (uploads.length) message.uploads = uploads
    return message
  }
}

