// Web pages where data should be: mostly the sign-in page of something in between.

/** How much of a text is looked at. */
const looked = 65_536;

export interface WebPage {
  title: string;
  /** It has a field for a password, or says so. */
  asksToSignIn: boolean;
}

/** @returns undefined for a text that is no web page. */
export function webPage(text: string): WebPage | undefined {
  const start = text.slice(0, looked);
  if (
    !/^\s*(<\?xml[^>]{0,200}\?>\s*)?(<!--[^>]{0,2000}-->\s*)?<(!doctype html|html|head|body)\b/i.test(start)
  )
    return undefined;
  const title = /<title[^>]{0,200}>([^<]{1,300})/i.exec(start)?.[1]?.trim() ?? '';
  return {
    title,
    asksToSignIn:
      /<input[^>]{0,500}\btype\s*=\s*["']?password/i.test(start) || /\b(sign|log)[ -]?(in|on)\b/i.test(title),
  };
}
