// SPDX-License-Identifier: MPL-2.0
// Shows the reader in C frames whose metadata is not what the element writes: good where they can be read, refused otherwise.
#define main read_labels_main
#include "../../examples/read_labels.c"
#undef main

enum { WIDTH = 5, HEIGHT = 3, REGIONS = 2 };

// A label map of zeros and ones in rows of `stride` bytes, `offset` bytes into a buffer that ends `missing` bytes too early.
static GstBuffer *make_labels(gsize offset, gsize stride, gsize missing, guint16 label) {
  const gsize size = offset + (HEIGHT - 1) * stride + 2 * WIDTH - missing;
  guint8 *data = g_malloc0(offset + HEIGHT * stride);
  for (gsize y = 0; y < HEIGHT; y++) GST_WRITE_UINT16_LE(data + offset + y * stride, label);
  // In memory of exactly its size, so that a memory checker sees who reads beyond.
  GstBuffer *buffer = gst_buffer_new_memdup(data, size);
  g_free(data);
  return buffer;
}

static void describe(GstBuffer *labels, GstVideoFormat format, guint width, guint height, gsize offset, gint stride) {
  gsize offsets[4] = {offset};
  gint strides[4] = {stride};
  GstVideoMeta *meta = gst_buffer_add_video_meta_full(labels, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_GRAY16_LE, WIDTH, HEIGHT, 1,
                                                      offsets, strides);
  // As nobody could have added it.
  meta->format = format;
  meta->width = width;
  meta->height = height;
}

static GstBuffer *make_table(guint records) {
  Region regions[REGIONS + 1] = {0};
  regions[0].area = GUINT32_TO_LE(WIDTH * HEIGHT - HEIGHT);
  regions[1].area = GUINT32_TO_LE(HEIGHT);
  return gst_buffer_new_memdup(regions, records * sizeof(Region));
}

static GstBuffer *make_frame(GstBuffer *labels, GstBuffer *table, guint regions, guint width, guint height) {
  GstBuffer *frame = gst_buffer_new();
  GstStructure *fields = gst_custom_meta_get_structure(gst_buffer_add_custom_meta(frame, "GstSuperpixelMeta"));
  gst_structure_set(fields, "regions", G_TYPE_UINT, regions, "width", G_TYPE_UINT, width, "height", G_TYPE_UINT, height, NULL);
  if (labels) gst_structure_set(fields, "labels", GST_TYPE_BUFFER, labels, NULL);
  if (table) gst_structure_set(fields, "table", GST_TYPE_BUFFER, table, NULL);
  gst_clear_buffer(&labels);
  gst_clear_buffer(&table);
  return frame;
}

static guint frames, wrong;
static void expect(gboolean good, GstBuffer *frame) {
  if (report(frames++, frame) != good) {
    g_printerr("frame %u: %s\n", frames - 1, good ? "refused" : "taken");
    wrong++;
  }
  gst_buffer_unref(frame);
}

int main(int argc, char **argv) {
  gst_init(&argc, &argv);
  gst_meta_register_custom("GstSuperpixelMeta", (const gchar *[]){NULL}, NULL, NULL, NULL);
  const GstVideoFormat gray = GST_VIDEO_FORMAT_GRAY16_LE;
  GstBuffer *labels;

  // Without a layout, and with one.
  expect(TRUE, make_frame(make_labels(0, 12, 0, 1), make_table(2), 2, WIDTH, HEIGHT));
  describe(labels = make_labels(6, 16, 0, 1), gray, WIDTH, HEIGHT, 6, 16);
  expect(TRUE, make_frame(labels, make_table(2), 2, WIDTH, HEIGHT));
  // Too short, by a row and by a byte; a label beyond the table.
  expect(FALSE, make_frame(make_labels(0, 12, 12, 1), make_table(2), 2, WIDTH, HEIGHT));
  expect(FALSE, make_frame(make_labels(0, 12, 1, 1), make_table(2), 2, WIDTH, HEIGHT));
  expect(FALSE, make_frame(make_labels(0, 12, 0, 60000), make_table(2), 2, WIDTH, HEIGHT));
  // Layouts that lie: rows, offset, stride, format, size.
  describe(labels = make_labels(0, 12, 0, 1), gray, WIDTH, 30000, 0, 12);
  expect(FALSE, make_frame(labels, make_table(2), 2, WIDTH, 30000));
  describe(labels = make_labels(0, 12, 0, 1), gray, WIDTH, HEIGHT, G_MAXSIZE - 3, 12);
  expect(FALSE, make_frame(labels, make_table(2), 2, WIDTH, HEIGHT));
  describe(labels = make_labels(0, 12, 0, 1), gray, WIDTH, HEIGHT, 0, G_MAXINT);
  expect(FALSE, make_frame(labels, make_table(2), 2, WIDTH, HEIGHT));
  describe(labels = make_labels(0, 12, 0, 1), gray, WIDTH, HEIGHT, 24, -12);
  expect(FALSE, make_frame(labels, make_table(2), 2, WIDTH, HEIGHT));
  describe(labels = make_labels(0, 12, 0, 1), GST_VIDEO_FORMAT_GRAY8, WIDTH, HEIGHT, 0, 12);
  expect(FALSE, make_frame(labels, make_table(2), 2, WIDTH, HEIGHT));
  describe(labels = make_labels(0, 12, 0, 1), gray, WIDTH + 1, HEIGHT, 0, 12);
  expect(FALSE, make_frame(labels, make_table(2), 2, WIDTH, HEIGHT));
  // Sizes and numbers that lie, records too few and too many, fields that are missing or of another type.
  expect(FALSE, make_frame(make_labels(0, 12, 0, 1), make_table(2), 2, 0, HEIGHT));
  expect(FALSE, make_frame(make_labels(0, 12, 0, 1), make_table(2), 2, G_MAXUINT, G_MAXUINT));
  expect(FALSE, make_frame(make_labels(0, 12, 0, 1), make_table(2), G_MAXUINT, WIDTH, HEIGHT));
  expect(FALSE, make_frame(make_labels(0, 12, 0, 1), make_table(1), 2, WIDTH, HEIGHT));
  expect(FALSE, make_frame(make_labels(0, 12, 0, 1), make_table(3), 2, WIDTH, HEIGHT));
  expect(FALSE, make_frame(NULL, make_table(2), 2, WIDTH, HEIGHT));
  expect(FALSE, make_frame(make_labels(0, 12, 0, 1), NULL, 2, WIDTH, HEIGHT));
  GstBuffer *frame = make_frame(NULL, make_table(2), 2, WIDTH, HEIGHT);
  gst_structure_set(gst_custom_meta_get_structure(gst_buffer_get_custom_meta(frame, "GstSuperpixelMeta")), "labels", G_TYPE_INT, 7, NULL);
  expect(FALSE, frame);
  expect(FALSE, gst_buffer_new());
  // Events: whole records, and half of one more.
  for (gsize more = 0; more <= sizeof(Event) / 2; more += sizeof(Event) / 2) {
    GstBuffer *events = gst_buffer_new_wrapped(g_malloc0(2 * sizeof(Event) + more), 2 * sizeof(Event) + more);
    frame = make_frame(make_labels(0, 12, 0, 1), make_table(2), 2, WIDTH, HEIGHT);
    gst_structure_set(gst_custom_meta_get_structure(gst_buffer_get_custom_meta(frame, "GstSuperpixelMeta")), "events", GST_TYPE_BUFFER,
                      events, NULL);
    gst_buffer_unref(events);
    expect(more == 0, frame);
  }
  g_print("%u frames, %u answered wrongly\n", frames, wrong);
  return wrong ? 1 : 0;
}
