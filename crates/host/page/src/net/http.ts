// Requests over HTTP. Every failure is a `HostError` with a sentence that can be shown.

import { HostError, type ErrorBody, type Upload } from '../contract'

/** The largest upload that the host takes. */
export const MAX_UPLOAD_BYTES = 32 << 20

async function answer (reply: Response): Promise<unknown> {
  const text = await reply.text()
  let body: unknown
  try {
    body = text ? JSON.parse(text) : undefined
  } catch {
    body = undefined
  }
  if (reply.ok) return body
  const error = (body as { error?: ErrorBody } | undefined)?.error
  throw new HostError(error ?? { code: 'unknown', message: `The server answered ${reply.status}.` }, reply.status)
}

export async function request<T> (method: string, path: string, body?: unknown): Promise<T> {
  const init: RequestInit = { method, credentials: 'same-origin' }
  if (body !== undefined) {
    init.body = JSON.stringify(body)
    init.headers = { 'Content-Type': 'application/json' }
  }
  let reply: Response
  try {
    reply = await fetch(path, init)
  } catch {
    throw new HostError({ code: 'offline', message: 'The server cannot be reached. Check that it runs, then try again.' })
  }
  return await answer(reply) as T
}

export const get = <T>(path: string) => request<T>('GET', path)
export const post = <T>(path: string, body: unknown) => request<T>('POST', path, body)
export const remove = (path: string) => request<unknown>('DELETE', path)

export async function upload (file: File): Promise<Upload> {
  if (file.size > MAX_UPLOAD_BYTES) {
    throw new HostError({ code: 'too_large', message: `${file.name || 'The file'} has ${Math.ceil(file.size / (1 << 20))} MB. The limit is 32 MB.` })
  }
  const reply = await fetch(`/v1/uploads?name=${encodeURIComponent(file.name || 'picture.png')}`, {
    method: 'POST',
    body: file,
    credentials: 'same-origin',
    headers: { 'Content-Type': file.type || 'application/octet-stream' }
  })
  return await answer(reply) as Upload
}
