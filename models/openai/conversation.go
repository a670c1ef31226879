package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/pawl-agents/pawl/internal/jsonscan"
	"github.com/pawl-agents/pawl/item"
)

// conversationPage is the most items the API returns at once
// (https://platform.openai.com/docs/api-reference/conversations/list-items).
const conversationPage = 100

// ConversationTail implements model.ConversationReader. It asks for a page at a time, newest first.
func (m *responses) ConversationTail(ctx context.Context, conversationID string, limit int) ([]item.Item, error) {
	if conversationID == "" || conversationID == "." || conversationID == ".." {
		return nil, refused(fmt.Errorf("conversation id %q is invalid", conversationID))
	}
	var items []item.Item
	after := ""
	for len(items) < limit {
		page, err := m.client.conversationItems(ctx, conversationID, after, min(limit-len(items), conversationPage))
		if err != nil {
			return nil, err
		}
		items = append(items, page.items...)
		if !page.more {
			break
		}
		after = page.last
	}
	items = items[:min(len(items), max(limit, 0))]
	slices.Reverse(items)
	return items, nil
}

// itemPage is one page of a conversation's items.
type itemPage struct {
	items []item.Item
	more  bool
	last  string // id of the last item
}

func (c *Client) conversationItems(ctx context.Context, id, after string, limit int) (*itemPage, error) {
	path := "conversations/" + url.PathEscape(id) + "/items?order=desc&limit=" + strconv.Itoa(limit)
	if after != "" {
		path += "&after=" + url.QueryEscape(after)
	}
	res, err := c.do(ctx, &transmission{}, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := readBody(res)
	if err != nil {
		return nil, answerCut(ctx, res, err)
	}
	if len(data) > MaxResponseSize {
		return nil, malformed(res, errTooLarge)
	}
	page, err := parseItemPage(data)
	if err != nil {
		return nil, malformed(res, err)
	}
	if page.more && (page.last == "" || page.last == after || len(page.items) == 0) {
		return nil, malformed(res, errors.New("the list of items does not get on"))
	}
	return page, nil
}

func parseItemPage(data []byte) (*itemPage, error) {
	page := &itemPage{}
	err := jsonscan.Object(data, func(key, value []byte) error {
		if jsonscan.IsNull(value) {
			return nil
		}
		var err error
		switch string(key) {
		case "data":
			page.items, err = parseItems(value)
		case "has_more":
			page.more, err = jsonscan.Bool(value)
		case "last_id":
			page.last, err = jsonscan.String(value)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}
